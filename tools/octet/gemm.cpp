// `octet gemm`: two files multiplied into a third, in FP8 with fine-grained scales, on the best
// backend there is. A and B go through in ranges of rows, so that memory is bounded whatever their
// sizes are.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "devices.h"
#include "gemm_device.h"
#include "gemm_error.h"
#include "gemm_operand.h"
#include "json_text.h"
#include "npy.h"
#include "octet/octet.hpp"
#include "option_parser.h"
#include "tensor_output.h"
#include "tiles.h"

namespace octet::tool {
namespace {

struct Options {
  std::string a, b, out, bias, dtype_bias, dtype_a, dtype_b;
  ScaleOptions sfa, sfb;
  std::string type = "bf16", backend = "auto", error = "sample";
  int32_t device = 0, threads = 0, split = 0;
  bool json = false;
};

octet_type type_of(const std::string& name) {
  return name == "f32" ? OCTET_F32 : name == "f16" ? OCTET_F16 : OCTET_BF16;
}

struct Bias {
  octet_type type = OCTET_NONE;
  std::vector<std::byte> data;
  std::vector<float> values;
};

Bias load_bias(const std::string& reference, const std::string& dtype, int64_t n) {
  Bias bias;
  if (reference.empty()) return bias;
  std::optional<TensorStore> opened;
  try {
    opened.emplace(parse_reference(reference).path);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("--bias {}", error.what()));
  }
  TensorStore& store = *opened;
  std::string name = parse_reference(reference).tensor;
  const Tensor& tensor = store.choose(name);
  const std::string where = label(store, name);
  // Bytes are no bias, whatever they stand for.
  bias.type =
      tensor.dtype == "U8" ? OCTET_E4M3 : element_type(tensor, dtype, where, "--dtype-bias");
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) count *= extent;
  if (bias.type == OCTET_E4M3 || tensor.shape.empty() || count != n ||
      *std::max_element(tensor.shape.begin(), tensor.shape.end()) != n) {
    throw std::runtime_error(fmt::format(
        "--bias {}: is {} {}: must be F32, BF16 or F16 with one value for each of B's {} rows",
        where, tensor.dtype, shape_text(tensor.shape), n));
  }
  bias.data.assign(tensor.data, tensor.data + tensor.bytes);
  bias.values.resize(static_cast<std::size_t>(n));
  to_floats(bias.type, tensor.data, n, bias.values.data());
  return bias;
}

// Where the product is computed, and why not elsewhere.
struct Backend {
  std::unique_ptr<GemmDevice> device;  // null: the CPU
  std::string why_cpu;
  DeviceSpec spec = DeviceSpec::preset("cpu").value();
};

Backend choose_backend(const Options& options, const GemmProblem& problem) {
  Backend backend;
  if (options.backend == "cpu" || problem.m == 0 || problem.n == 0) return backend;
  try {
    auto device = std::make_unique<GemmDevice>(options.device);
    supports(problem, device->spec()).value();
    backend.spec = device->spec();
    backend.device = std::move(device);
  } catch (const std::runtime_error& error) {
    if (options.backend == "cuda") throw;
    backend.why_cpu = error.what();
  }
  return backend;
}

// D's file, of either format.
class Output {
 public:
  Output(const std::string& reference, octet_type type, int64_t m, int64_t n) {
    const TensorReference out = parse_reference(reference);
    if (is_npy(out.path)) {
      npy_.emplace(out.path, type, std::vector<int64_t>{m, n});
    } else if (is_safetensors(out.path)) {
      const std::string name = out.tensor.empty() ? "d" : out.tensor;
      safetensors_.emplace(out.path, std::vector<NewTensor>{{name, octet_to_dtype(type), {m, n}}},
                           std::map<std::string, std::string>{});
    } else {
      throw std::runtime_error(
          fmt::format("-o {}: must end in .npy or .safetensors", printable(out.path)));
    }
  }
  Place place() { return npy_ ? npy_->place() : safetensors_->place(0); }
  void commit() { place().file->commit(); }

 private:
  std::optional<NpyOutput> npy_;
  std::optional<SafetensorsOutput> safetensors_;
};

// Rows of an operand at a time: whole blocks of 128, and as many as keep its codes, `width` bytes a
// row, within bounds.
int64_t rows_at_a_time(int64_t rows, int64_t width) {
  constexpr int64_t kMostElements = int64_t{1} << 26;
  const int64_t most = kMostElements / std::max<int64_t>(width, 1) / 128 * 128;
  return std::min(std::max<int64_t>(most, 128), std::max<int64_t>(rows, 1));
}

void must_fit(const Operand& a, const Operand& b) {
  if (a.k() == b.k()) return;
  throw std::runtime_error(
      fmt::format("{} is [{}, {}] and {} is [{}, {}]: both must have K columns, as D = A * B^T",
                  a.label(), a.rows(), a.k(), b.label(), b.rows(), b.k()));
}

std::string what_error_is_against(const Operand& a, const Operand& b) {
  if (!a.quantised() && !b.quantised()) return "the unquantised product";
  return fmt::format("the product of {} unquantised and {} as its codes say",
                     a.quantised() ? "B" : "A", a.quantised() ? "A" : "B");
}

void print(const nlohmann::json& report) {
  const auto text = [&](const char* key) { return report[key].get<std::string>(); };
  fmt::print("D[{}, {}] = A[{}, {}] * B[{}, {}]^T\n", report["m"].get<int64_t>(),
             report["n"].get<int64_t>(), report["m"].get<int64_t>(), report["k"].get<int64_t>(),
             report["n"].get<int64_t>(), report["k"].get<int64_t>());
  fmt::print("  A        {}: {}\n  B        {}: {}\n", text("a"), text("a_is"), text("b"),
             text("b_is"));
  fmt::print("  backend  {}{}\n", text("backend"),
             text("why_cpu").empty() ? "" : " (" + text("why_cpu") + ")");
  fmt::print("  plan     {}\n  time     {:.3f} ms\n", text("plan"),
             report["milliseconds"].get<double>());
  if (const auto& error = report["error"]; !error.is_null()) {
    const std::string looked_at =
        error["rows"] == report["m"] && error["columns"] == report["n"]
            ? "all outputs"
            : fmt::format("{} of the rows, {} of the columns", error["rows"].get<int64_t>(),
                          error["columns"].get<int64_t>());
    if (error["relative_error"].is_null()) {
      fmt::print("  error    none: D, or the product it is compared with, holds NaN or infinity\n");
    } else {
      fmt::print("  error    {:.3f} % of {}; 1 - cos* {:.2e}, worst {:.4g} ({})\n",
                 100 * error["relative_error"].get<double>(), error["against"].get<std::string>(),
                 error["difference"].get<double>(), error["worst_element"].get<double>(),
                 looked_at);
    }
  }
  fmt::print("  D        {}, {}\n", text("output"), text("type"));
}

// D a tile at a time: rows of A by rows of B. Returns the milliseconds of the products alone.
double multiply(const Options& options, const Operand& a, const Operand& b, const Bias& bias,
                const Backend& backend, const GemmPlan& whole, const Place& place,
                ErrorSample* sample) {
  constexpr int64_t kMostColumns = int64_t{1} << 18;  // of D, so that its tiles stay small too
  const octet_gemm_problem& problem = whole.problem;
  const int64_t element = problem.d_type == OCTET_F32 ? 4 : 2;
  const int64_t bias_element = problem.bias_type == OCTET_F32 ? 4 : 2;
  const int64_t across = std::min(rows_at_a_time(problem.n, problem.k), kMostColumns);
  const int64_t down = rows_at_a_time(problem.m, std::max(problem.k, across));
  OperandRows a_rows, b_rows;
  std::vector<std::byte> d;
  double milliseconds = 0;
  Progress progress("multiplying", problem.m * problem.n);
  for (int64_t col = 0; col < problem.n; col += across) {
    b.load(col, std::min(across, problem.n - col), b_rows);
    if (backend.device) backend.device->forget_b();
    for (int64_t row = 0; row < problem.m; row += down) {
      const Tile tile{row, col, std::min(down, problem.m - row), b_rows.rows};
      a.load(row, tile.rows, a_rows);
      d.resize(static_cast<std::size_t>(tile.rows * tile.cols * element));
      GemmPlan plan = whole;
      if (tile.rows != problem.m || tile.cols != problem.n) {
        // The bits depend on the split: that of the whole is kept.
        GemmProblem part;
        static_cast<octet_gemm_problem&>(part) = problem;
        part.m = tile.rows;
        part.n = tile.cols;
        part.split = whole.split;
        plan = plan_gemm(part, backend.spec).value();
      }
      GemmArgs args;
      a_rows.into(args, true);
      b_rows.into(args, false);
      args.d = matrix(d.data(), tile.rows, tile.cols);
      if (bias.type != OCTET_NONE) args.bias = bias.data.data() + col * bias_element;
      if (backend.device) {
        milliseconds += backend.device->multiply(plan, args);
      } else {
        const auto start = std::chrono::steady_clock::now();
        cpu::run(plan, args, options.threads).value();
        milliseconds +=
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                .count();
      }
      write_tile(place, problem.n, element, tile, d.data());
      if (sample != nullptr) sample->take(tile, problem.d_type, d.data());
      progress.add(tile.rows * tile.cols);
    }
  }
  return milliseconds;
}

int run_gemm(const Options& options) {
  const Operand a(options.a, options.dtype_a, options.sfa, true, options.threads);
  const Operand b(options.b, options.dtype_b, options.sfb, false, options.threads);
  must_fit(a, b);
  GemmProblem problem;
  problem.m = a.rows();
  problem.n = b.rows();
  problem.k = a.k();
  problem.d_type = type_of(options.type);
  problem.granularity = b.coarse() ? OCTET_1D2D : OCTET_1D1D;
  problem.sfb_layout = OCTET_COLUMN_MAJOR;
  problem.split = options.split;
  const Bias bias = load_bias(options.bias, options.dtype_bias, problem.n);
  problem.bias_type = bias.type;
  Backend backend = choose_backend(options, problem);
  const GemmPlan whole = plan_gemm(problem, backend.spec).value();
  Output output(options.out, problem.d_type, problem.m, problem.n);
  std::optional<ErrorSample> sample;
  if (options.error != "none" && !(a.quantised() && b.quantised())) {
    sample.emplace(a, b, bias.values, options.error == "full", options.threads);
  }

  const double milliseconds =
      multiply(options, a, b, bias, backend, whole, output.place(), sample ? &*sample : nullptr);
  nlohmann::json report = {{"m", problem.m},
                           {"n", problem.n},
                           {"k", problem.k},
                           {"a", a.label()},
                           {"a_is", a.describe()},
                           {"b", b.label()},
                           {"b_is", b.describe()},
                           {"problem", problem.to_string()},
                           {"backend", backend.device ? backend.device->name() : "CPU"},
                           {"why_cpu", backend.why_cpu},
                           {"plan", whole.to_string()},
                           {"split", whole.split},
                           {"milliseconds", milliseconds},
                           {"output", printable(options.out)},
                           {"type", octet_to_dtype(problem.d_type)},
                           {"error", nullptr}};
  if (sample) {
    report["error"] = sample->compare();
    report["error"]["against"] = what_error_is_against(a, b);
  }
  output.commit();
  if (options.json) {
    fmt::print("{}\n", json_text(report));
  } else {
    print(report);
  }
  return kRight;
}

}  // namespace

Command add_gemm(CLI::App& app) {
  Subcommand gemm(app, "gemm", "D = A * B^T in FP8, files in and out");
  const auto options = std::make_shared<Options>();
  gemm.add("a", options->a,
           "A [M, K]: FILE.npy, FILE.safetensors:TENSOR or FOLDER:TENSOR; quantised or not")
      .required();
  gemm.add("b", options->b, "B [N, K], likewise: a layer's weight as models hold it").required();
  gemm.add("-o,--output", options->out, "D [M, N]: FILE.npy or FILE.safetensors[:NAME]").required();
  gemm.add("--bias", options->bias, "one value for each column of D: FILE[:TENSOR]");
  gemm.add("--dtype-bias", options->dtype_bias, "what 16-bit integers of the bias are: bf16")
      .one_of({"bf16"});
  gemm.add("--out", options->type, "type of D").one_of({"bf16", "f16", "f32"}).shows_default();
  gemm.add("--sfa", options->sfa.scales,
           "scales of A's codes: FILE[:TENSOR] or a number; by default TENSOR_scale_inv or "
           "TENSOR_scale beside them");
  gemm.add("--sfb", options->sfb.scales, "scales of B's codes, likewise");
  gemm.add("--layout-a", options->sfa.layout,
           "how scales of A's codes lie: [rows, blocks of K] (row) or the transpose "
           "(column); needed where a .npy file's shape fits both")
      .one_of({"row", "column"});
  gemm.add("--layout-b", options->sfb.layout, "how those of B's lie").one_of({"row", "column"});
  gemm.add("--dtype-a", options->dtype_a, "what integers of A are: e4m3 (8 bits) or bf16 (16 bits)")
      .one_of({"e4m3", "bf16"});
  gemm.add("--dtype-b", options->dtype_b, "what integers of B are").one_of({"e4m3", "bf16"});
  gemm.add("--backend", options->backend, "auto (the best there is), cpu or cuda")
      .one_of({"auto", "cpu", "cuda"})
      .shows_default();
  gemm.add("--device", options->device, "number of the device, from 0")
      .between(0, 1023)
      .shows_default();
  gemm.add("--split", options->split,
           "ranges that K is cut into, each summed by itself; 0: as the plan says. With the same "
           "split both backends give the same bits")
      .between(0, 64)
      .shows_default();
  gemm.add("--threads", options->threads, "threads of the CPU; 0 for all")
      .between(0, 1024)
      .shows_default();
  gemm.add("--error", options->error,
           "compare with the unquantised product: some outputs (sample), all (full), none")
      .one_of({"sample", "full", "none"})
      .shows_default();
  gemm.flag("--json", options->json, "print JSON");
  gemm.footer(
      "Operands that are not quantised yet are quantised on the way: A with a scale for 1x128\n"
      "elements, B for 128x128. Pitches are padded as the kernels want them; any sizes will do.\n"
      "\nExamples:\n"
      "  octet gemm x.npy model.safetensors:layer.weight -o d.npy\n"
      "  octet gemm x8.npy w8.npy -o d.npy --dtype-a e4m3 --dtype-b e4m3 --out f32\n"
      "  octet gemm x.npy my-model-fp8:layer.weight -o d.safetensors:y --bias b.npy --json\n"
      "\nExit codes: 0 right; 1 writing failed midway (a full disk), or the device failed; 2 bad "
      "input,\nor a path that cannot be written to as given; 3 no usable device (--backend cuda); "
      "130\ninterrupted. D appears under its name when all of it is on the disk, or not at all.\n");
  return {gemm.app(), [options] { return run_gemm(*options); }};
}

}  // namespace octet::tool
