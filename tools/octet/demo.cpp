// `octet demo`. Takes both products of one feed-forward block of a sentence-embedding model, with
// the activations of real sentences, and multiplies them four ways:
//
//   fine-grained   one scale per token and 128 channels, one per 128x128 weights, promoted to FP32
//                  every 128 channels: what this library is for
//   per tensor     one scale for all activations, one for all weights; still promoted
//   no promotion   fine-grained scales cannot exist without promotion, so: per-tensor scales and
//   one
//                  tensor-core chain over the whole K, which keeps 14 bits
//   BF16           unquantised operands, for comparison
//
// and compares each with the product of the unquantised operands in double precision. The promoted
// FP8 rows are what the library has kernels for: they are computed on the device if there is one,
// and then on the CPU too, whose bits must be the same.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "demo_device.h"
#include "json_text.h"
#include "octet/octet.hpp"
#include "option_parser.h"
#include "ref/tensor_core.h"
#include "safetensors.h"
#include "sample_layers.h"
#include "samples_folder.h"
#include "threads/parallel.h"

namespace octet::tool {
namespace {

struct Quantized {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
  int64_t pitch = 0;  // of the scales
};

struct Outcome {
  std::string method, scales, accumulation;
  double relative_error = 0;  // |y - exact| / |exact|, Euclidean
  double difference = 0;      // 1 - 2 sum(xy) / sum(x^2 + y^2)
  double worst = 0;           // largest |y - exact| of any element
  double milliseconds = 0;
  std::string backend = "CPU";  // what computed it
};

// Where the promoted FP8 products are computed.
struct Backend {
  std::unique_ptr<DemoDevice> device;  // null: the CPU
  std::string why_cpu;                 // the reason, if it was not asked for
  int64_t compared = 0;                // outputs of the device that equal the CPU's
};

float bf16(uint16_t code) { return std::bit_cast<float>(uint32_t{code} << 16); }

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// As quantising has it: what is not finite counts as nothing.
float largest(const std::vector<uint16_t>& x) {
  float most = 0;
  for (const uint16_t code : x) {
    const float value = std::fabs(bf16(code));
    if (std::isfinite(value)) most = std::max(most, value);
  }
  return most;
}

// amax_min of 0 gives fine-grained scales; the largest magnitude of all gives one scale for all.
Quantized quantize(const std::vector<uint16_t>& data, int64_t rows, int64_t k, int64_t ld,
                   int32_t block, float amax_min) {
  Quantized q;
  const int64_t scale_rows = block == OCTET_BLOCK_1X128 ? rows : ceil_div(rows, 128);
  q.pitch = ceil_div(scale_rows, 4) * 4;  // columns of scales stay 16-byte aligned
  q.codes.resize(data.size());
  q.scales.resize(static_cast<std::size_t>(q.pitch * k_blocks(k)));
  QuantizeArgs args;
  args.block = block;
  args.x_type = OCTET_BF16;
  args.amax_min = amax_min;
  args.x = matrix(data.data(), rows, k, ld);
  args.codes = matrix(q.codes.data(), rows, k, ld);
  args.scales = q.scales.data();
  args.row_stride = 1;
  args.k_stride = q.pitch;
  cpu::quantize(args).value();
  return q;
}

std::unique_ptr<DemoDevice> find_device(const std::string& wanted, std::string& why_cpu) {
  if (wanted == "cpu") return nullptr;
  try {
    return std::make_unique<DemoDevice>(0);
  } catch (const std::runtime_error& error) {
    if (wanted == "cuda") throw;
    why_cpu = error.what();
    return nullptr;
  }
}

// Throws CheckFailed at the first output whose bits differ.
void must_be_equal(const std::vector<float>& device, const std::vector<float>& cpu,
                   const Layer& layer, const std::string& plan) {
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    if (std::bit_cast<uint32_t>(device[i]) == std::bit_cast<uint32_t>(cpu[i])) continue;
    throw CheckFailed(fmt::format(
        "{}: D[{}, {}] is {:.9g} on the device and {:.9g} on the CPU ({}); `octet verify` looks "
        "further",
        layer.name, i / static_cast<std::size_t>(layer.n), i % static_cast<std::size_t>(layer.n),
        device[i], cpu[i], plan));
  }
}

// On the backend; outcome tells which that was and how long it took.
std::vector<float> multiply(const Layer& layer, const Quantized& x, const Quantized& w,
                            Backend& backend, Outcome& outcome, std::string& plan_text) {
  GemmProblem problem;
  problem.m = layer.m;
  problem.n = layer.n;
  problem.k = layer.k;
  problem.d_type = OCTET_F32;
  problem.sfb_layout = OCTET_COLUMN_MAJOR;
  const DeviceSpec spec =
      backend.device ? backend.device->spec() : DeviceSpec::preset("cpu").value();
  const GemmPlan plan = plan_gemm(problem, spec).value();
  plan_text = plan.to_string();
  std::vector<float> d(static_cast<std::size_t>(layer.m * layer.n));
  GemmArgs args;
  args.a = matrix(x.codes.data(), layer.m, layer.k, layer.ld);
  args.b = matrix(w.codes.data(), layer.n, layer.k, layer.ld);
  args.d = matrix(d.data(), layer.m, layer.n);
  args.sfa = column_major_scales(x.scales.data(), x.pitch);
  args.sfb = column_major_scales(w.scales.data(), w.pitch);
  const auto start = std::chrono::steady_clock::now();
  cpu::run(plan, args).value();
  outcome.milliseconds = since(start);
  if (backend.device && !layer.x.empty() && !d.empty()) {
    outcome.backend = backend.device->name();
    must_be_equal(backend.device->multiply(plan, args, outcome.milliseconds), d, layer, plan_text);
    backend.compared += layer.m * layer.n;
  }
  return d;
}

std::vector<float> multiply_bf16(const Layer& layer) {
  GemmProblem problem;
  problem.m = layer.m;
  problem.n = layer.n;
  problem.k = layer.k;
  problem.in_type = OCTET_BF16;
  problem.granularity = OCTET_SCALE_NONE;
  problem.d_type = OCTET_F32;
  const GemmPlan plan = plan_gemm(problem, DeviceSpec::preset("cpu").value()).value();
  std::vector<float> d(static_cast<std::size_t>(layer.m * layer.n));
  GemmArgs args;
  args.a = matrix(layer.x.data(), layer.m, layer.k, layer.ld);
  args.b = matrix(layer.w.data(), layer.n, layer.k, layer.ld);
  args.d = matrix(d.data(), layer.m, layer.n);
  cpu::run(plan, args).value();
  return d;
}

// One chain of tensor-core instructions over the whole K, scaled at the end.
std::vector<float> multiply_unpromoted(const Layer& layer, const Quantized& x, const Quantized& w) {
  std::vector<float> d(static_cast<std::size_t>(layer.m * layer.n));
  if (x.scales.empty() || w.scales.empty()) return d;  // nothing to add up
  const float scale = x.scales[0] * w.scales[0];
  oct::threads::parallel_ranges(layer.m, 0, [&](int64_t first, int64_t last) {
    for (int64_t i = first * layer.n; i < last * layer.n; ++i) {
      const uint32_t chain =
          oct::ref::wgmma_chain_e4m3(x.codes.data() + i / layer.n * layer.ld,
                                     w.codes.data() + i % layer.n * layer.ld, layer.k, 0);
      d[static_cast<std::size_t>(i)] = scale * std::bit_cast<float>(chain);
    }
  });
  return d;
}

std::vector<double> multiply_exactly(const Layer& layer) {
  std::vector<double> d(static_cast<std::size_t>(layer.m * layer.n));
  oct::threads::parallel_ranges(layer.m, 0, [&](int64_t first, int64_t last) {
    for (int64_t i = first * layer.n; i < last * layer.n; ++i) {
      const auto* x = layer.x.data() + i / layer.n * layer.ld;
      const auto* w = layer.w.data() + i % layer.n * layer.ld;
      double sum = 0;
      for (int64_t k = 0; k < layer.k; ++k) sum += double{bf16(x[k])} * double{bf16(w[k])};
      d[static_cast<std::size_t>(i)] = sum;
    }
  });
  return d;
}

void compare(const std::vector<float>& y, const std::vector<double>& exact, Outcome& outcome) {
  double error = 0, square = 0, product = 0, both = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double v = y[i];
    error += (v - exact[i]) * (v - exact[i]);
    square += exact[i] * exact[i];
    product += v * exact[i];
    both += v * v + exact[i] * exact[i];
    const double distance = std::fabs(v - exact[i]);
    if (!(distance <= outcome.worst)) outcome.worst = distance;  // a NaN stays
    if (std::isnan(outcome.worst)) break;
  }
  if (std::isnan(outcome.worst)) {  // without the sign, which means nothing
    outcome.relative_error = outcome.difference = outcome.worst = std::fabs(outcome.worst);
    return;
  }
  // Nothing but zeros, all of them right.
  outcome.relative_error = error == 0 ? 0 : std::sqrt(error / square);
  outcome.difference = both == 0 ? 0 : 1 - 2 * product / both;
}

std::vector<Outcome> run_layer(const Layer& layer, Backend& backend, std::string& plan_text) {
  const std::vector<double> exact = multiply_exactly(layer);
  std::vector<Outcome> outcomes;
  const auto add = [&](const char* method, const char* scales, const char* accumulation,
                       auto multiply_it) {
    Outcome outcome{method, scales, accumulation};
    const auto start = std::chrono::steady_clock::now();
    const std::vector<float> y = multiply_it(outcome);
    if (outcome.milliseconds == 0) outcome.milliseconds = since(start);
    compare(y, exact, outcome);
    outcomes.push_back(outcome);
  };
  const Quantized x = quantize(layer.x, layer.m, layer.k, layer.ld, OCTET_BLOCK_1X128, 0);
  const Quantized w = quantize(layer.w, layer.n, layer.k, layer.ld, OCTET_BLOCK_128X128, 0);
  add("FP8, fine-grained", "1x128 and 128x128", "promoted to FP32 every 128",
      [&](Outcome& o) { return multiply(layer, x, w, backend, o, plan_text); });
  const Quantized xt =
      quantize(layer.x, layer.m, layer.k, layer.ld, OCTET_BLOCK_1X128, largest(layer.x));
  const Quantized wt =
      quantize(layer.w, layer.n, layer.k, layer.ld, OCTET_BLOCK_128X128, largest(layer.w));
  std::string ignored;
  add("FP8, per tensor", "one per matrix", "promoted to FP32 every 128",
      [&](Outcome& o) { return multiply(layer, xt, wt, backend, o, ignored); });
  add("FP8, no promotion", "one per matrix", "tensor core alone (14 bits)",
      [&](Outcome&) { return multiply_unpromoted(layer, xt, wt); });
  add("BF16", "none needed", "tensor core (FP32, cut)",
      [&](Outcome&) { return multiply_bf16(layer); });
  return outcomes;
}

struct DemoOptions {
  std::string samples;  // empty: wherever it is found
  std::string backend = "auto";
  bool json = false;
};

std::string describe(const Backend& backend) {
  if (backend.device) {
    return fmt::format("{} computed the promoted FP8 rows; all {} outputs have the CPU's bits",
                       backend.device->name(), backend.compared);
  }
  return "the CPU, whose bits are those of Hopper's tensor cores" +
         (backend.why_cpu.empty() ? "" : "\n         (" + backend.why_cpu + ")");
}

int run_demo(const DemoOptions& options) {
  const std::string folder = options.samples.empty() ? find_samples() : options.samples;
  const std::string sample = folder + "/" + kSampleFile;
  std::error_code error;
  if (!std::filesystem::exists(sample, error)) {
    throw Error(
        OCTET_INVALID_ARGUMENT,
        fmt::format("--samples: there is no {}: must be the folder `samples` of the sources, "
                    "or of an installation",
                    sample));
  }
  const Safetensors file(sample);
  Backend backend;
  backend.device = find_device(options.backend, backend.why_cpu);
  const bool json = options.json;
  nlohmann::json report = nlohmann::json::array();
  if (!json) {
    fmt::print("Octet {}: fine-grained FP8 on a real trained layer\n\n", version());
    fmt::print(
        "Two products of a feed-forward block of all-MiniLM-L6-v2, with the activations of\n"
        "real sentences. Each is computed in FP8 and compared with the product of the\n"
        "unquantised operands in double precision. Smaller errors are better.\n");
  }
  for (const Layer& layer : find_layers(file)) {
    std::string plan_text;
    const std::vector<Outcome> outcomes = run_layer(layer, backend, plan_text);
    if (json) {
      nlohmann::json rows = nlohmann::json::array();
      for (const Outcome& o : outcomes) {
        rows.push_back({{"method", o.method},
                        {"scales", o.scales},
                        {"accumulation", o.accumulation},
                        {"relative_error", o.relative_error},
                        {"difference", o.difference},
                        {"worst_element", o.worst},
                        {"computed_by", o.backend},
                        {"milliseconds", o.milliseconds}});
      }
      report.push_back({{"layer", layer.name},
                        {"m", layer.m},
                        {"n", layer.n},
                        {"k", layer.k},
                        {"plan", plan_text},
                        {"results", rows}});
      continue;
    }
    fmt::print("\n{}: D[{},{}] = X[{},{}] * W[{},{}]^T\n", layer.name, layer.m, layer.n, layer.m,
               layer.k, layer.n, layer.k);
    fmt::print("plan: {}\n\n", plan_text);
    fmt::print("  {:<18} {:<18} {:<27} {:>8} {:>10} {:>8} {:>12}  {}\n", "method", "scales",
               "accumulation", "error", "1 - cos*", "worst", "time", "computed by");
    for (const Outcome& o : outcomes) {
      fmt::print("  {:<18} {:<18} {:<27} {:>7.3f}% {:>10.2e} {:>8.4f} {:>9.3f} ms  {}\n", o.method,
                 o.scales, o.accumulation, 100 * o.relative_error, o.difference, o.worst,
                 o.milliseconds, o.backend);
    }
  }
  if (json) {
    fmt::print("{}\n", json_text(report));
    return kRight;
  }
  fmt::print(
      "\nerror     |D - exact| / |exact| over the whole product\n"
      "1 - cos*  1 - 2 sum(xy) / sum(x^2 + y^2), the field's usual figure\n"
      "worst     largest error of any element: where one scale for all hurts most\n\n"
      "An FP8 element holds 4 significant bits, so no FP8 method gets below about 1 %. "
      "Fine-grained\n"
      "scales keep outliers from costing their neighbours bits; promotion keeps the tensor cores'\n"
      "14-bit sums from adding an error of their own, which grows with K.\n\n"
      "The sample's tensors are BF16 themselves, so the BF16 row loses nothing but the sum's last "
      "bits.\n"
      "The row without promotion runs the slow instruction model; its time means nothing.\n"
      "Backend: {}.\n",
      describe(backend));
  return kRight;
}

}  // namespace

Command add_demo(CLI::App& app) {
  Subcommand demo(app, "demo", "multiply a real trained layer in FP8 and compare");
  const auto options = std::make_shared<DemoOptions>();
  demo.add("--samples", options->samples,
           "folder that holds minilm_ffn.safetensors (default: samples, or where it was "
           "installed)");
  demo.add("--backend", options->backend,
           "what computes the promoted FP8 rows: auto (the best there is), cpu or cuda")
      .one_of({"auto", "cpu", "cuda"})
      .shows_default();
  demo.flag("--json", options->json, "print JSON");
  demo.footer(
      "Examples:\n"
      "  octet demo                      on the device if there is one\n"
      "  octet demo --backend cpu --json\n"
      "\nExit codes: 0 right; 1 the device's bits are not the CPU's, or it failed; 2 bad input, "
      "such "
      "as\nno sample; 3 no usable device (--backend cuda).\n");
  return {demo.app(), [options] { return run_demo(*options); }};
}

}  // namespace octet::tool
