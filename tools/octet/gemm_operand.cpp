// See gemm_operand.h.
#include "gemm_operand.h"

#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "tiles.h"

namespace octet::tool {

GemmArgs& OperandRows::into(GemmArgs& args, bool is_a) const {
  (is_a ? args.a : args.b) = matrix(codes.data(), rows, k, ld);
  (is_a ? args.sfa : args.sfb) = column_major_scales(scales.data(), pitch);
  return args;
}

Operand::Operand(const std::string& reference, const std::string& dtype,
                 const ScaleOptions& scale_options, bool is_a, int32_t threads)
    : store_(parse_reference(reference).path), is_a_(is_a), threads_(threads) {
  const std::string& scales = scale_options.scales;
  const std::string option = is_a ? "--sfa" : "--sfb";
  std::string name = parse_reference(reference).tensor;
  if (name.empty() && !store_.holds_one_array()) name = store_.only_codes();
  tensor_ = &store_.choose(name);
  label_ = octet::tool::label(store_, name);
  must_be_matrix(*tensor_, label_);
  // Bytes with scales can only be codes.
  const bool bytes_are_codes = tensor_->dtype == "U8" && !scales.empty();
  type_ = element_type(*tensor_, bytes_are_codes ? "e4m3" : dtype, label_,
                       is_a ? "--dtype-a" : "--dtype-b");
  if (!quantised()) {
    if (!scales.empty()) {
      throw std::runtime_error(fmt::format("{} {}: {} holds {}, which has no scales", option,
                                           printable(scales), label_, octet_to_dtype(type_)));
    }
    return;
  }
  source_.emplace(store_, name, scales, option);
  const KnownOptions& known = source_->known();
  if (known.axis && known.transpose && (*known.axis == 1) == *known.transpose) {
    throw std::runtime_error(
        fmt::format("{}: its K runs down the columns: quantise it with --axis 1, or with --axis 0 "
                    "--transpose",
                    label_));
  }
  ScaleHints hints;
  if (known.block) hints.block = *known.block == "1x128" ? OCTET_BLOCK_1X128 : OCTET_BLOCK_128X128;
  if (known.layout) hints.column = *known.layout == "column";
  // Scales given apart from the file need not be those it tells of.
  if (!scales.empty()) hints = {};
  if (!scale_options.layout.empty()) hints.column = scale_options.layout == "column";
  if (source_->is_npy()) hints.layout_option = is_a ? "--layout-a" : "--layout-b";
  map_.emplace(source_->tensor(), rows(), k(), hints, source_->label());
}

std::string Operand::describe() const {
  if (!quantised()) {
    return fmt::format("{}, quantised on its way ({})", octet_to_dtype(type_),
                       coarse() ? "128x128" : "1x128");
  }
  return fmt::format("e4m3 with scales {} ({})", source_->label(), map_->describe());
}

void Operand::quantize(int64_t row, OperandRows& out) const {
  const int64_t element = dtype_bytes(octet_to_dtype(type_));
  std::vector<std::byte> in;
  for_each_tile(out.rows, out.k, false, [&](const Tile& tile) {
    read_tile(tensor_->data + row * out.k * element, out.k, element, tile, in);
    QuantizeArgs args;
    args.block = coarse() ? OCTET_BLOCK_128X128 : OCTET_BLOCK_1X128;
    args.x_type = type_;
    args.threads = threads_;
    args.x = matrix(in.data(), tile.rows, tile.cols);
    args.codes =
        matrix(out.codes.data() + tile.row * out.ld + tile.col, tile.rows, tile.cols, out.ld);
    args.scales = out.scales.data() + tile.row / (coarse() ? 128 : 1) + tile.col / 128 * out.pitch;
    args.row_stride = 1;
    args.k_stride = out.pitch;
    cpu::quantize(args).value();
  });
}

void Operand::load(int64_t row, int64_t rows, OperandRows& out) const {
  const int64_t blocks = k_blocks(k()), lines = coarse() ? ceil_div(rows, 128) : rows;
  out.rows = rows;
  out.k = k();
  out.ld = ceil_div(k(), 16) * 16;
  out.pitch = ceil_div(lines, 4) * 4;
  out.codes.resize(static_cast<std::size_t>(rows * out.ld));
  out.scales.resize(static_cast<std::size_t>(out.pitch * blocks));
  if (!quantised()) return quantize(row, out);
  for (int64_t i = 0; i < rows && k() > 0; ++i) {
    std::memcpy(out.codes.data() + i * out.ld, tensor_->data + (row + i) * k(),
                static_cast<std::size_t>(k()));
  }
  if (coarse() || map_->block() == OCTET_BLOCK_1X128) {
    const int64_t unit = coarse() ? 128 : 1;
    map_->load(row / unit, lines, 0, blocks, out.scales.data(), 1, out.pitch);
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {  // A's rows share the scales of a square
    map_->load((row + i) / 128, 1, 0, blocks, out.scales.data() + i, 1, out.pitch);
  }
}

void Operand::values(int64_t row, float* to) const {
  const int64_t element = dtype_bytes(octet_to_dtype(type_));
  to_floats(type_, tensor_->data + row * k() * element, k(), to);
  if (!quantised()) return;
  const int64_t line = map_->block() == OCTET_BLOCK_128X128 ? row / 128 : row;
  std::vector<float> scales(static_cast<std::size_t>(k_blocks(k())));
  map_->load(line, 1, 0, k_blocks(k()), scales.data(), 1, 1);
  for (int64_t i = 0; i < k(); ++i) to[i] *= scales[static_cast<std::size_t>(i / 128)];
}

}  // namespace octet::tool
