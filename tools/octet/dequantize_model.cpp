// See dequantize_model.h.
#include "dequantize_model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "model_files.h"

namespace octet::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> kScaleSuffixes = {"_scale_inv", "_scale"};

bool are_codes(const Tensor* tensor) { return tensor != nullptr && tensor->dtype == "F8_E4M3"; }

// Scales of codes that are dequantised: they are for nothing then.
bool is_scale_of_codes(TensorStore& model, const std::string& name) {
  return std::any_of(kScaleSuffixes.begin(), kScaleSuffixes.end(), [&](std::string_view suffix) {
    return name.ends_with(suffix) &&
           are_codes(model.find(name.substr(0, name.size() - suffix.size())));
  });
}

struct Job {
  const Tensor* tensor;
  // Null: the tensor is copied.
  std::unique_ptr<ScaleSource> source;
  std::unique_ptr<ScaleMap> scales;
  QuantizeOptions quantize;
  int64_t rows = 0, cols = 0;
};

Job job_of(TensorStore& model, const std::string& name, const Tensor& tensor,
           const DequantizeOptions& options) {
  Job job{&tensor, nullptr, nullptr, options.quantize};
  if (!are_codes(&tensor)) return job;
  const std::string where = label(model, name);
  must_be_matrix(tensor, where);
  job.source = std::make_unique<ScaleSource>(model, name, "", "--scales");
  QuantizeOptions& q = job.quantize;
  const ScaleHints hints = options.hints(*job.source, q);
  job.rows = tensor.shape[q.transpose ? 1 : 0];
  job.cols = tensor.shape[q.transpose ? 0 : 1];
  job.scales =
      std::make_unique<ScaleMap>(job.source->tensor(), q.axis == 1 ? job.rows : job.cols,
                                 q.axis == 1 ? job.cols : job.rows, hints, job.source->label());
  return job;
}

void dequantize_shard(TensorStore& model, const Safetensors& in, const std::string& out,
                      const DequantizeOptions& options, ModelDone& done) {
  std::vector<NewTensor> outputs;
  std::vector<Job> jobs;
  std::map<std::string, std::string> metadata = in.metadata();
  const std::string file = fs::path(out).filename().string();
  const char* const type = octet_to_dtype(options.type);
  int64_t work = 0;
  for (const auto& [name, tensor] : in.tensors()) {
    if (is_scale_of_codes(model, name)) continue;
    jobs.push_back(job_of(model, name, tensor, options));
    const Job& job = jobs.back();
    work += tensor.bytes;
    if (!job.scales) {
      outputs.push_back({name, tensor.dtype, tensor.shape});
      ++done.copied;
      continue;
    }
    outputs.push_back({name, type, {job.rows, job.cols}});
    metadata.erase(quantization_key(name));
    done.tensors.push_back({{"name", name},
                            {"file", file},
                            {"to", type},
                            {"shape", outputs.back().shape},
                            {"scales", job.source->label()},
                            {"scales_of", job.scales->describe()}});
  }
  done.note(in, file, outputs);
  SafetensorsOutput output(out, outputs, metadata);
  Progress progress("dequantising " + printable(in.path()), work);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    if (job.scales) {
      dequantize_tensor(job.quantize, *job.tensor, *job.scales, options.type, job.rows, job.cols,
                        output.place(i), progress);
    } else {
      copy_bytes(job.tensor->data, job.tensor->bytes, output.place(i), progress);
    }
  }
  output.file().commit();
}

void must_hold_codes(TensorStore& model) {
  for (const std::string& file : model.shards()) {
    for (const auto& [name, tensor] : model.shard(file).tensors()) {
      if (are_codes(&tensor)) return;
    }
  }
  throw std::runtime_error(
      fmt::format("{}: holds no tensor of e4m3 codes (F8_E4M3)", printable(model.path())));
}

nlohmann::json report(const ModelDone& done) {
  return {{"dequantised", done.tensors}, {"copied", done.copied}, {"bytes", done.bytes}};
}

}  // namespace

nlohmann::json dequantize_file(TensorStore& file, const std::string& out,
                               const DequantizeOptions& options) {
  must_hold_codes(file);
  ModelDone done;
  dequantize_shard(file, file.shard(file.path()), out, options, done);
  return report(done);
}

nlohmann::json dequantize_folder(TensorStore& model, const std::string& out,
                                 const DequantizeOptions& options) {
  must_hold_codes(model);
  ModelDone done;
  const nlohmann::json left_out = rewrite_model(
      model, out, done,
      [&](const Safetensors& shard, const std::string& to) {
        dequantize_shard(model, shard, to, options, done);
      },
      [](nlohmann::ordered_json& config) {
        if (config.is_object()) config.erase("quantization_config");
      });
  nlohmann::json result = report(done);
  result["left_out"] = left_out;
  return result;
}

}  // namespace octet::tool
