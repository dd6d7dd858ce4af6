// Quantise and dequantise: any bits in x, codes and scales, any strides that the check lets
// through, buffers that end exactly where the strides say. Both implementations give the same
// bytes.
#include "fuzz_input.h"

namespace {

using namespace octet_fuzz;

int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }

octet_quantize_args take_args(Input& input) {
  octet_quantize_args args;
  octet_quantize_args_init(&args);
  args.block = input.pick<int32_t>({OCTET_BLOCK_1X128, OCTET_BLOCK_128X128});
  args.axis = static_cast<int32_t>(input.between(0, 1));
  args.transpose = static_cast<int32_t>(input.between(0, 1));
  args.x_type = input.pick<octet_type>({OCTET_F32, OCTET_BF16, OCTET_F16});
  args.scale_format = static_cast<int32_t>(input.between(0, 2));
  args.amax_min = input.one_in(2) ? 0.0f : input.take<float>();
  args.threads = static_cast<int32_t>(input.one_in(16) ? input.between(2, 4) : 1);
  if (input.one_in(32)) args.block = input.take<int32_t>();
  if (input.one_in(32)) args.scale_format = input.take<int32_t>();
  return args;
}

// The least that holds rows and cols, or a gap between rows.
octet_matrix shape(Input& input, int64_t rows, int64_t cols) {
  octet_matrix x{nullptr, rows, cols, cols + (input.one_in(2) ? input.between(0, 20) : 0), 0};
  if (rows == 0 || cols == 0) x.ld = x.group_stride = input.wild();
  return x;
}

int64_t elements(const octet_matrix& x) {
  return x.rows == 0 || x.cols == 0 ? 0 : (x.rows - 1) * x.ld + x.cols;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  Input input(data, size);
  octet_quantize_args args = take_args(input);
  // Both sides of one block and of two, mostly with few of the other.
  const bool long_k = input.one_in(4);
  const int64_t k = long_k ? input.between(120, 300) : input.between(0, 140);
  const int64_t lines = !long_k && input.one_in(8) ? input.between(100, 270) : input.between(0, 9);
  const int64_t codes_k = input.one_in(2) ? k : k + input.between(0, 127);
  const bool along_columns = args.axis == 1;
  args.x = along_columns ? shape(input, lines, k) : shape(input, k, lines);
  args.codes = along_columns != (args.transpose == 1) ? shape(input, lines, codes_k)
                                                      : shape(input, codes_k, lines);
  const int64_t scale_lines = args.block == OCTET_BLOCK_1X128 ? lines : ceil_div(lines, 128);
  const int64_t blocks = ceil_div(k, 128);
  switch (input.between(0, 3)) {
    case 0:
      args.row_stride = blocks + input.between(0, 3);
      args.k_stride = 1;
      break;
    case 1:
      args.row_stride = input.between(0, 4);
      args.k_stride = input.between(0, 200);
      break;
    default:
      args.row_stride = 1;
      args.k_stride = scale_lines + input.between(0, 3);
      break;
  }

  const int64_t x_bytes = elements(args.x) * (args.x_type == OCTET_F32 ? 4 : 2);
  const int64_t scale_count =
      scale_lines == 0 || blocks == 0
          ? 0
          : 1 + (scale_lines - 1) * args.row_stride + (blocks - 1) * args.k_stride;
  const int64_t scale_bytes = scale_count * (args.scale_format == OCTET_SCALES_UE8M0 ? 1 : 4);
  Buffer x(x_bytes), codes(elements(args.codes)), scales(scale_bytes);
  x.scatter(input);
  codes.scatter(input);
  scales.scatter(input);
  Buffer codes_too(codes), scales_too(scales);

  args.x.data = x.data();
  args.codes.data = codes.data();
  args.scales = scales.data();
  const Buffer x_before(x);
  const octet_code code = octet_ref_quantize(&args);
  if (code != OCTET_OK) promise_sentence();
  promise(x == x_before, "quantise leaves x alone");
  args.codes.data = codes_too.data();
  args.scales = scales_too.data();
  promise(octet_cpu_quantize(&args) == code, "both quantise, or neither");
  promise(x == x_before, "quantise leaves x alone");
  promise(scales == scales_too, "both give the same scales");
  promise(codes == codes_too, "both give the same codes");

  // Back, from codes and scales that need not come from x.
  if (input.one_in(2)) {
    codes_too.scatter(input);
    scales_too.scatter(input);
  }
  const Buffer codes_before(codes_too), scales_before(scales_too);
  Buffer back(x), back_too(x);
  args.x.data = back.data();
  const octet_code back_code = octet_ref_dequantize(&args);
  if (back_code != OCTET_OK) promise_sentence();
  // And more: scales that are only read may share places.
  promise(back_code == OCTET_OK || code != OCTET_OK, "dequantise accepts what quantise does");
  args.x.data = back_too.data();
  promise(octet_cpu_dequantize(&args) == back_code, "both dequantise, or neither");
  promise(back == back_too, "both give the same x");
  promise(codes_too == codes_before && scales_too == scales_before, "its inputs are left alone");
  return 0;
}
