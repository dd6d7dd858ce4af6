// `octet quantize` and `octet dequantize`: files in, files out.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "complain.h"
#include "dequantize_model.h"
#include "inputs.h"
#include "json_text.h"
#include "npy.h"
#include "option_parser.h"
#include "quantize_model.h"
#include "scale_source.h"

namespace octet::tool {
namespace {

struct Options {
  std::string in, out, dtype;
  std::string scales_out;            // quantize, .npy
  std::string scales, type = "f32";  // dequantize
  ModelOptions model{{"*.weight"}, {"*embed*", "*lm_head*", "*.gate.weight"}, {}};
  bool json = false;
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void bad_output(const std::string& out) {
  throw std::runtime_error(fmt::format("-o {}: must end in .npy or .safetensors", printable(out)));
}

octet_type type_of(const std::string& name) {
  return name == "f32" ? OCTET_F32 : name == "bf16" ? OCTET_BF16 : OCTET_F16;
}

void print_left_out(const nlohmann::json& report) {
  for (const auto& name : report.value("left_out", nlohmann::json::array())) {
    fmt::print("not copied: {}\n", name.get<std::string>());
  }
}

void print(const nlohmann::json& report) { fmt::print("{}\n", json_text(report)); }

nlohmann::json quantize_one(const Options& options, TensorStore& store, std::string name) {
  const QuantizeOptions& q = options.model.quantize;
  const Tensor& x = store.choose(name);
  const std::string where = label(store, name);
  must_be_matrix(x, where);
  if (x.dtype == "U8") {
    throw std::runtime_error(where +
                             ": holds 8-bit integers: must be F32, BF16 or F16; if they are codes "
                             "already, `octet dequantize` reads them");
  }
  const octet_type type = element_type(x, options.dtype, where);
  if (type == OCTET_E4M3) throw std::runtime_error(where + ": holds e4m3 codes already");
  const int64_t rows = x.shape[0], cols = x.shape[1];
  const auto codes_are = codes_shape(q, rows, cols), scales_are = scales_shape(q, rows, cols);
  Progress progress("quantising " + where, rows * cols);
  const TensorReference out = parse_reference(options.out);
  const std::string out_name = out.tensor.empty() ? name : out.tensor;
  std::vector<std::string> files{out.path};
  int64_t not_finite = 0;
  if (is_safetensors(out.path)) {
    SafetensorsOutput file(out.path,
                           {{out_name, "F8_E4M3", codes_are},
                            {out_name + "_scale_inv", octet_to_dtype(q.scale_type()), scales_are}},
                           {{quantization_key(out_name), q.to_string()}});
    not_finite = quantize_tensor(q, type, x, file.place(0), file.place(1), progress);
    file.file().commit();
  } else if (is_npy(out.path)) {
    files.push_back(options.scales_out.empty() ? default_scales_file(out.path)
                                               : options.scales_out);
    if (same_file(files[0], files[1])) {
      throw std::runtime_error(
          fmt::format("--scales-out {}: must be another file than -o", printable(files[1])));
    }
    if (!is_npy(files[1])) {
      throw std::runtime_error(
          fmt::format("--scales-out {}: must end in .npy", printable(files[1])));
    }
    NpyOutput codes(files[0], OCTET_E4M3, codes_are);
    NpyOutput scales(files[1], q.scale_type(), scales_are);
    not_finite = quantize_tensor(q, type, x, codes.place(), scales.place(), progress);
    OutputFile* const both[] = {&scales.file(), &codes.file()};
    OutputFile::commit(both);
  } else {
    bad_output(out.path);
  }
  return {{"quantised",
           {{{"name", out_name},
             {"from", octet_to_dtype(type)},
             {"codes", codes_are},
             {"scales", scales_are},
             {"blocks_not_finite", not_finite}}}},
          {"copied", 0},
          {"files", files}};
}

int run_quantize(const Options& options) {
  const auto start = Clock::now();
  const TensorReference in = parse_reference(options.in);
  nlohmann::json report;
  const bool no_name = in.tensor.empty();
  if (!options.scales_out.empty() && !is_npy(options.out)) {
    throw std::runtime_error(
        "--scales-out: is for .npy: in .safetensors scales lie beside the codes");
  }
  if (no_name && is_folder(in.path)) {
    report = quantize_folder(in.path, options.out, options.model);
  } else if (no_name && is_safetensors(in.path) && is_safetensors(options.out) &&
             Safetensors(in.path).tensors().size() != 1) {
    report = quantize_file(in.path, options.out, options.model);
  } else {
    TensorStore store(in.path);
    report = quantize_one(options, store, in.tensor);
  }
  // NaN and infinity have no scale: said, for a weight that was broken before is easily missed.
  for (const auto& tensor : report["quantised"]) {
    const int64_t blocks = tensor["blocks_not_finite"].get<int64_t>();
    if (blocks == 0) continue;
    complain("octet: {}: {} block{} of {} hold{} NaN or infinity, which became NaN\n",
             printable(tensor["name"].get<std::string>()), blocks, blocks == 1 ? "" : "s",
             options.model.quantize.block, blocks == 1 ? "s" : "");
  }
  report["input"] = options.in;
  report["output"] = options.out;
  report["options"] = options.model.quantize.to_string();
  report["seconds"] = seconds_since(start);
  if (options.json) {
    print(report);
    return kRight;
  }
  for (const auto& tensor : report["quantised"]) {
    fmt::print("{}: {} -> e4m3 {} and scales {}\n", printable(tensor["name"].get<std::string>()),
               tensor["from"].get<std::string>(), tensor["codes"].dump(), tensor["scales"].dump());
  }
  print_left_out(report);
  if (const std::string note = report.value("config_note", ""); !note.empty()) {
    fmt::print("{}\n", note);
  }
  fmt::print("{}: {} quantised, {} copied, {:.2f} s ({})\n", printable(options.out),
             report["quantised"].size(), report["copied"].get<int64_t>(),
             report["seconds"].get<double>(), options.model.quantize.to_string());
  return kRight;
}

// What was said on the command line goes before what the file says.
void fill_in(QuantizeOptions& options, const KnownOptions& known, const Subcommand& said) {
  if (known.axis && !said.given("--axis")) options.axis = *known.axis;
  if (known.transpose && !said.given("--transpose")) options.transpose = *known.transpose;
}

ScaleHints hints(const ScaleSource& source, const QuantizeOptions& options,
                 const Subcommand& said) {
  const KnownOptions& known = source.known();
  ScaleHints hints;
  if (source.is_npy()) hints.layout_option = "--layout";
  const bool block = said.given("--block"), layout = said.given("--layout");
  const std::string& said_block = block ? options.block : known.block.value_or("");
  const std::string& said_layout = layout ? options.layout : known.layout.value_or("");
  if (!said_block.empty()) {
    hints.block = said_block == "1x128" ? OCTET_BLOCK_1X128 : OCTET_BLOCK_128X128;
  }
  if (!said_layout.empty()) hints.column = said_layout == "column";
  return hints;
}

// Every tensor of codes in a model, or in a file of several.
int dequantize_all(const Options& options, const Subcommand& said, TensorStore& store,
                   bool folder) {
  const auto start = Clock::now();
  if (!options.scales.empty()) {
    throw std::runtime_error(
        fmt::format("--scales {}: is for one tensor: give {}:TENSOR, or leave it out, as models "
                    "hold scales beside the codes",
                    printable(options.scales), printable(options.in)));
  }
  DequantizeOptions all;
  all.quantize = options.model.quantize;
  all.type = said.given("--to") ? type_of(options.type) : OCTET_BF16;
  all.hints = [&said](const ScaleSource& source, QuantizeOptions& q) {
    fill_in(q, source.known(), said);
    return hints(source, q, said);
  };
  nlohmann::json report = folder ? dequantize_folder(store, options.out, all)
                                 : dequantize_file(store, options.out, all);
  report["input"] = options.in;
  report["output"] = options.out;
  report["seconds"] = seconds_since(start);
  if (options.json) {
    print(report);
    return kRight;
  }
  for (const auto& tensor : report["dequantised"]) {
    fmt::print("{}: {} {} from scales {}\n", printable(tensor["name"].get<std::string>()),
               tensor["to"].get<std::string>(), tensor["shape"].dump(),
               tensor["scales_of"].get<std::string>());
  }
  print_left_out(report);
  fmt::print("{}: {} dequantised, {} copied, {:.2f} s\n", printable(options.out),
             report["dequantised"].size(), report["copied"].get<int64_t>(),
             report["seconds"].get<double>());
  return kRight;
}

int run_dequantize(const Options& options, const Subcommand& said) {
  const auto start = Clock::now();
  const TensorReference in = parse_reference(options.in);
  TensorStore store(in.path);
  std::string name = in.tensor;
  if (name.empty() && is_folder(in.path) && !is_npy(options.out) && !is_safetensors(options.out)) {
    return dequantize_all(options, said, store, true);
  }
  if (name.empty() && is_safetensors(in.path) && is_safetensors(options.out) &&
      store.count_codes() > 1) {
    return dequantize_all(options, said, store, false);
  }
  if (name.empty() && !store.holds_one_array()) name = store.only_codes();
  const Tensor& codes = store.choose(name);
  const std::string where = label(store, name);
  must_be_matrix(codes, where);
  if (element_type(codes, "e4m3", where) != OCTET_E4M3) {
    throw std::runtime_error(fmt::format("{}: holds {}: must be e4m3 codes", where, codes.dtype));
  }
  const ScaleSource source(store, name, options.scales, "--scales");
  QuantizeOptions q = options.model.quantize;
  fill_in(q, source.known(), said);
  const int64_t rows = codes.shape[q.transpose ? 1 : 0], cols = codes.shape[q.transpose ? 0 : 1];
  const ScaleMap scales(source.tensor(), q.axis == 1 ? rows : cols, q.axis == 1 ? cols : rows,
                        hints(source, q, said), source.label());
  const octet_type type = type_of(options.type);
  Progress progress("dequantising " + where, rows * cols);
  const TensorReference out = parse_reference(options.out);
  const std::string out_name = out.tensor.empty() ? name : out.tensor;
  if (is_safetensors(out.path)) {
    SafetensorsOutput file(out.path, {{out_name, octet_to_dtype(type), {rows, cols}}}, {});
    dequantize_tensor(q, codes, scales, type, rows, cols, file.place(0), progress);
    file.file().commit();
  } else if (is_npy(out.path)) {
    NpyOutput file(out.path, type, {rows, cols});
    dequantize_tensor(q, codes, scales, type, rows, cols, file.place(), progress);
    file.file().commit();
  } else {
    bad_output(out.path);
  }
  const nlohmann::json report = {{"input", options.in},
                                 {"scales", source.label()},
                                 {"scales_of", scales.describe()},
                                 {"output", options.out},
                                 {"name", out_name},
                                 {"type", octet_to_dtype(type)},
                                 {"shape", {rows, cols}},
                                 {"seconds", seconds_since(start)}};
  if (options.json) {
    print(report);
  } else {
    fmt::print("{}: {} [{}, {}] from {} with {} ({}), {:.2f} s\n", printable(options.out),
               octet_to_dtype(type), rows, cols, where, source.described(), scales.describe(),
               report["seconds"].get<double>());
  }
  return kRight;
}

constexpr const char* kExitCodes =
    "\nExit codes: 0 right; 1 writing failed midway (a full disk); 2 bad input, or a path that "
    "cannot\nbe written to as given; 130 interrupted. Output appears under its name when all of it "
    "is on\nthe disk, or not at all.\n";

// Dequantising, what is not given follows from the file: there is no default to show.
void add_axis_options(Subcommand& subcommand, QuantizeOptions& options, bool quantising) {
  const auto otherwise = [&](const char* what,
                             const char* known = "as the file or its shapes say") {
    return std::string(what) + (quantising ? "" : std::string("; by default ") + known);
  };
  const AddedOption block =
      subcommand
          .add("--block", options.block,
               otherwise("elements of one scale: 128x128 (weights) or 1x128 (activations)"))
          .one_of({"1x128", "128x128"});
  const AddedOption axis = subcommand
                               .add("--axis", options.axis,
                                    otherwise("K, along which blocks run: 1, along rows' "
                                              "elements, or 0, down the columns",
                                              "as the file says, else 1"))
                               .one_of({0, 1});
  subcommand.flag("--transpose", options.transpose,
                  otherwise("codes are the transpose of the matrix", "as the file says"));
  const AddedOption layout =
      subcommand
          .add("--layout", options.layout,
               otherwise("scales as a matrix [rows, blocks of K] (row) or its transpose (column)"))
          .one_of({"row", "column"});
  if (quantising) {
    for (AddedOption option : {block, axis, layout}) option.shows_default();
  }
  subcommand.add("--threads", options.threads, "threads; 0 for all the processor's")
      .between(0, 1024)
      .shows_default();
}

}  // namespace

Command add_quantize(CLI::App& app) {
  Subcommand quantize(app, "quantize",
                      "matrices of files into e4m3 codes and their scales; whole models too");
  const auto options = std::make_shared<Options>();
  QuantizeOptions& q = options->model.quantize;
  quantize
      .add("input", options->in, "FILE.npy, FILE.safetensors[:TENSOR], or the folder of a model")
      .required();
  quantize
      .add("-o,--output", options->out,
           "FILE.npy, FILE.safetensors[:NAME], or a new folder for a model")
      .required();
  add_axis_options(quantize, q, /*quantising=*/true);
  quantize.add("--scales", q.scales, "f32; pow2, powers of two in FP32; or ue8m0, one byte")
      .one_of({"f32", "pow2", "ue8m0"})
      .shows_default();
  quantize.add("--amax-min", q.amax_min, "a block's largest magnitude counts as at least this")
      .between(0.0, 3.4e38)
      .shows_default();
  quantize.add("--dtype", options->dtype, "what 16-bit integers of the input are: bf16")
      .one_of({"bf16"});
  quantize.add("--scales-out", options->scales_out,
               "file of the scales; by default OUT_scale_inv.npy for OUT.npy");
  quantize
      .add("--include", options->model.include,
           "models: shell patterns of the 2-D weights to quantise; the rest is copied")
      .shows_default();
  quantize.add("--exclude", options->model.exclude, "models: patterns of those to copy")
      .shows_default();
  quantize.flag("--json", options->json, "print JSON");
  quantize.footer(
      std::string("Examples:\n"
                  "  octet quantize w.npy -o w8.npy                  codes, and w8_scale_inv.npy\n"
                  "  octet quantize x.npy -o x8.safetensors --block 1x128       activations\n"
                  "  octet quantize m.safetensors:layer.weight -o w8.safetensors\n"
                  "  octet quantize my-model -o my-model-fp8 --include '*_proj.weight'\n") +
      kExitCodes);
  return {quantize.app(), [options] { return run_quantize(*options); }};
}

Command add_dequantize(CLI::App& app) {
  Subcommand dequantize(app, "dequantize",
                        "e4m3 codes and scales back into matrices; whole "
                        "models too");
  const auto options = std::make_shared<Options>();
  dequantize
      .add("input", options->in,
           "codes: FILE.npy, FILE.safetensors[:TENSOR], FOLDER:TENSOR, or the folder of a "
           "model")
      .required();
  dequantize
      .add("-o,--output", options->out,
           "FILE.npy, FILE.safetensors[:NAME], or a new folder for a model")
      .required();
  dequantize.add("--scales", options->scales,
                 "FILE[:TENSOR] or a number; by default TENSOR_scale_inv or TENSOR_scale "
                 "beside the codes");
  add_axis_options(dequantize, options->model.quantize, /*quantising=*/false);
  dequantize.add("--to", options->type, "type of the result; by default f32, of whole models bf16")
      .one_of({"f32", "bf16", "f16"});
  dequantize.flag("--json", options->json, "print JSON");
  dequantize.footer(
      std::string(
          "A .safetensors file that octet quantize wrote says how its scales lie. Elsewhere blocks "
          "and\nlayout follow from the shapes, and --axis and --transpose are as when nothing was "
          "said.\n"
          "\nExamples:\n"
          "  octet dequantize w8.npy -o w.npy                           with w8_scale_inv.npy\n"
          "  octet dequantize m.safetensors:layer.weight -o w.npy --to bf16\n"
          "  octet dequantize my-model-fp8 -o my-model-bf16\n") +
      kExitCodes);
  return {dequantize.app(), [options, dequantize] { return run_dequantize(*options, dequantize); }};
}

}  // namespace octet::tool
