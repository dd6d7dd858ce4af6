// See quantize_model.h.
#include "quantize_model.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "model_files.h"

namespace octet::tool {
namespace {

namespace fs = std::filesystem;

bool matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

bool is_float_matrix(const Tensor& tensor) {
  const octet_type type = dtype_to_octet(tensor.dtype);
  return tensor.shape.size() == 2 && (type == OCTET_F32 || type == OCTET_BF16 || type == OCTET_F16);
}

void quantize_shard(const Safetensors& in, const std::string& out, const ModelOptions& options,
                    ModelDone& done) {
  struct Job {
    const Tensor* tensor;
    std::size_t codes, scales;  // among the outputs; equal: it is copied
  };
  std::vector<NewTensor> outputs;
  std::vector<Job> jobs;
  std::size_t next = done.tensors.size();
  std::map<std::string, std::string> metadata = in.metadata();
  const std::string file = fs::path(out).filename().string();
  for (const auto& [name, tensor] : in.tensors()) {
    const bool chosen = is_float_matrix(tensor) && matches(options.include, name) &&
                        !matches(options.exclude, name);
    const std::size_t first = outputs.size();
    if (!chosen) {
      outputs.push_back({name, tensor.dtype, tensor.shape});
      jobs.push_back({&tensor, first, first});
      ++done.copied;
      constexpr std::string_view kWeight = ".weight";
      if (is_float_matrix(tensor) && name.ends_with(kWeight)) {
        done.left.insert(name.substr(0, name.size() - kWeight.size()));
      }
      continue;
    }
    must_be_matrix(tensor, printable(in.path()) + ":" + printable(name));
    const int64_t rows = tensor.shape[0], cols = tensor.shape[1];
    outputs.push_back({name, "F8_E4M3", codes_shape(options.quantize, rows, cols)});
    outputs.push_back({name + "_scale_inv", octet_to_dtype(options.quantize.scale_type()),
                       scales_shape(options.quantize, rows, cols)});
    metadata[quantization_key(name)] = options.quantize.to_string();
    jobs.push_back({&tensor, first, first + 1});
    done.tensors.push_back({{"name", name},
                            {"file", file},
                            {"from", tensor.dtype},
                            {"codes", outputs[first].shape},
                            {"scales", outputs[first + 1].shape}});
  }
  done.note(in, file, outputs);
  SafetensorsOutput output(out, outputs, metadata);
  int64_t work = 0;
  for (const Job& job : jobs) work += job.tensor->bytes;
  Progress progress("quantising " + printable(in.path()), work);
  for (const Job& job : jobs) {
    if (job.codes == job.scales) {
      copy_bytes(job.tensor->data, job.tensor->bytes, output.place(job.codes), progress);
    } else {
      done.tensors[next++]["blocks_not_finite"] =
          quantize_tensor(options.quantize, dtype_to_octet(job.tensor->dtype), *job.tensor,
                          output.place(job.codes), output.place(job.scales), progress);
    }
  }
  output.file().commit();
}

nlohmann::json report(const ModelDone& done) {
  return {{"quantised", done.tensors}, {"copied", done.copied}, {"bytes", done.bytes}};
}

bool anything_matches(const Safetensors& in, const ModelOptions& options) {
  return std::any_of(in.tensors().begin(), in.tensors().end(), [&](const auto& entry) {
    return is_float_matrix(entry.second) && matches(options.include, entry.first) &&
           !matches(options.exclude, entry.first);
  });
}

[[noreturn]] void nothing_matches(const std::string& in, const ModelOptions& options) {
  throw std::runtime_error(
      fmt::format("{}: no F32, BF16 or F16 matrix has a name that --include {} takes and --exclude "
                  "does not",
                  printable(in), printable(fmt::format("{}", fmt::join(options.include, " ")))));
}

// What inference engines look for in config.json; only where it is true.
void describe_in_config(nlohmann::ordered_json& config, const ModelOptions& options,
                        const ModelDone& done) {
  const QuantizeOptions& q = options.quantize;
  if (!config.is_object() || config.contains("quantization_config") || q.block != "128x128" ||
      q.axis != 1 || q.transpose || q.scales == "ue8m0" || q.layout != "row") {
    return;
  }
  config["quantization_config"] = {{"quant_method", "fp8"},
                                   {"fmt", "e4m3"},
                                   {"activation_scheme", "dynamic"},
                                   {"weight_block_size", {128, 128}},
                                   {"modules_to_not_convert", done.left}};
}

}  // namespace

nlohmann::json quantize_file(const std::string& in, const std::string& out,
                             const ModelOptions& options) {
  const Safetensors file(in);
  if (!anything_matches(file, options)) nothing_matches(in, options);
  ModelDone done;
  quantize_shard(file, out, options, done);
  return report(done);
}

nlohmann::json quantize_folder(const std::string& in, const std::string& out,
                               const ModelOptions& options) {
  TensorStore model(in);
  const std::vector<std::string> shards = model.shards();
  if (std::none_of(shards.begin(), shards.end(), [&](const std::string& shard) {
        return anything_matches(model.shard(shard), options);
      })) {
    nothing_matches(in, options);
  }
  ModelDone done;
  const nlohmann::json left_out = rewrite_model(
      model, out, done,
      [&](const Safetensors& shard, const std::string& to) {
        quantize_shard(shard, to, options, done);
      },
      [&](nlohmann::ordered_json& config) { describe_in_config(config, options, done); });
  nlohmann::json result = report(done);
  result["left_out"] = left_out;
  return result;
}

}  // namespace octet::tool
