// See quantize_model.h.
#include "quantize_model.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

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

void copy(const std::byte* from, int64_t bytes, const Place& to, Progress& progress) {
  constexpr int64_t kPiece = int64_t{1} << 24;
  for (int64_t at = 0; at < bytes; at += kPiece) {
    const int64_t piece = std::min(kPiece, bytes - at);
    to.file->write_at(to.offset + at, from + at, piece);
    progress.add(piece);
  }
}

void copy_file(const std::string& from, const std::string& to) {
  const MappedFile in(from);
  OutputFile out(to);
  Progress progress("copying " + printable(from), in.size());
  copy(in.data(), in.size(), {&out, 0}, progress);
  out.commit();
}

void write_json(const nlohmann::ordered_json& json, const std::string& path) {
  OutputFile out(path);
  const std::string text = json.dump(2) + "\n";
  out.write_at(0, text.data(), static_cast<int64_t>(text.size()));
  out.commit();
}

// Of all files of a model.
struct Done {
  nlohmann::json tensors = nlohmann::json::array();  // quantised
  std::map<std::string, std::string> where;          // every tensor written -> its file
  std::set<std::string> left;                        // modules with a 2-D weight that was copied
  int64_t copied = 0, bytes = 0;
};

void quantize_shard(const Safetensors& in, const std::string& out, const ModelOptions& options,
                    Done& done) {
  struct Job {
    const Tensor* tensor;
    std::size_t codes, scales;  // among the outputs; equal: it is copied
  };
  std::vector<NewTensor> outputs;
  std::vector<Job> jobs;
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
  for (const NewTensor& tensor : outputs) {
    if (!done.where.emplace(tensor.name, file).second) {
      throw std::runtime_error(fmt::format("{}: tensor {}: would be written twice",
                                           printable(in.path()), printable(tensor.name)));
    }
    done.bytes += tensor_bytes(tensor);
  }
  SafetensorsOutput output(out, outputs, metadata);
  int64_t work = 0;
  for (const Job& job : jobs) work += job.tensor->bytes;
  Progress progress("quantising " + printable(in.path()), work);
  for (const Job& job : jobs) {
    if (job.codes == job.scales) {
      copy(job.tensor->data, job.tensor->bytes, output.place(job.codes), progress);
    } else {
      quantize_tensor(options.quantize, dtype_to_octet(job.tensor->dtype), *job.tensor,
                      output.place(job.codes), output.place(job.scales), progress);
    }
  }
  output.file().commit();
}

nlohmann::json report(const Done& done) {
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
                        const Done& done) {
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

nlohmann::ordered_json read_json(const std::string& path) {
  const MappedFile file(path);
  const auto* text = reinterpret_cast<const char*>(file.data());
  auto json = nlohmann::ordered_json::parse(text, text + file.size(), nullptr, false);
  if (json.is_discarded()) file.fail("is not JSON (which has neither NaN nor Infinity)");
  return json;
}

}  // namespace

nlohmann::json quantize_file(const std::string& in, const std::string& out,
                             const ModelOptions& options) {
  const Safetensors file(in);
  if (!anything_matches(file, options)) nothing_matches(in, options);
  Done done;
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
  // Before the work, not after it.
  std::error_code none;
  if (fs::is_regular_file(in + "/config.json", none)) read_json(in + "/config.json");
  OutputFolder folder(out);
  Done done;
  for (const std::string& shard : shards) {
    quantize_shard(model.shard(shard), folder.path() + "/" + shard, options, done);
  }
  nlohmann::json left_out = nlohmann::json::array();
  constexpr std::string_view kIndex = "model.safetensors.index.json";
  std::error_code error;
  for (fs::directory_iterator entry(in, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::string to = folder.path() + "/" + name;
    std::error_code ignored;
    if (name == kIndex || std::find(shards.begin(), shards.end(), name) != shards.end()) continue;
    if (!entry->is_regular_file(ignored) || is_safetensors(name)) {
      left_out.push_back(printable(name));
    } else if (name == "config.json") {
      nlohmann::ordered_json config = read_json(entry->path().string());
      describe_in_config(config, options, done);
      write_json(config, to);
    } else {
      copy_file(entry->path().string(), to);
    }
  }
  if (error) {
    throw std::runtime_error(fmt::format("{}: cannot be read: {}", printable(in), error.message()));
  }
  if (fs::exists(in + "/" + std::string(kIndex), error)) {
    nlohmann::ordered_json index = read_json(in + "/" + std::string(kIndex));
    index["metadata"]["total_size"] = done.bytes;
    index["weight_map"] = done.where;
    write_json(index, folder.path() + "/" + std::string(kIndex));
  }
  folder.commit();
  nlohmann::json result = report(done);
  result["left_out"] = left_out;
  return result;
}

}  // namespace octet::tool
