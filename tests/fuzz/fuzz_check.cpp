// octet_check() reads no operand, so it can be asked about pointers that lead nowhere: for any
// sizes, strides and addresses it answers, and no sum or product of them overflows.
#include "fuzz_input.h"

namespace {

using namespace octet_fuzz;

// An address: mostly one that suits, so that later rules are reached.
void* take_pointer(Input& input) {
  switch (input.between(0, 7)) {
    case 0: return nullptr;
    case 1: return reinterpret_cast<void*>(input.take<uintptr_t>());
    case 2: return reinterpret_cast<void*>(~uintptr_t{0} << input.between(0, 9));
    default: return reinterpret_cast<void*>(uintptr_t{input.take<uint16_t>()} << 36);
  }
}

int64_t take_size(Input& input) {
  if (input.one_in(6)) return input.wild();
  return input.one_in(3) ? input.pick<int64_t>({0, 1, 2, INT32_MAX, INT32_MAX - 127, 1 << 20})
                         : input.between(0, 255);
}

// The value that suits, or a much too large one that suits as well, or any.
int64_t stride(Input& input, int64_t least) {
  switch (input.between(0, 5)) {
    case 0: return input.wild();
    case 1: return int64_t{1} << input.between(0, 41);
    case 2: return 0;
    default: return least;
  }
}

octet_matrix take_matrix(Input& input, int64_t rows, int64_t cols) {
  octet_matrix x{};
  x.data = take_pointer(input);
  x.rows = input.one_in(16) ? take_size(input) : rows;
  x.cols = input.one_in(16) ? take_size(input) : cols;
  x.ld = stride(input, cols / 16 * 16 + 16);
  x.group_stride = stride(input, int64_t{1} << 38);
  return x;
}

octet_scale_matrix take_scales(Input& input, octet_scale_layout layout) {
  octet_scale_matrix x{};
  x.data = static_cast<const float*>(take_pointer(input));
  x.row_stride = stride(input, layout == OCTET_ROW_MAJOR ? 64 : 1);
  x.k_stride = stride(input, layout == OCTET_ROW_MAJOR ? 1 : 1 << 20);
  x.group_stride = stride(input, 1 << 20);
  return x;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  Input input(data, size);
  octet_gemm_problem problem = take_problem(input);
  problem.m = take_size(input);
  problem.n = take_size(input);
  problem.k = take_size(input);
  if (problem.grouping != OCTET_DENSE) problem.groups = take_size(input);
  if (problem.grouping == OCTET_MASKED) problem.max_m = take_size(input);
  bool made = false;
  octet_gemm_plan plan = take_plan(problem, made);
  if (!made) return 0;
  if (input.one_in(4)) plan.workspace_bytes = input.wild();
  if (input.one_in(16)) plan.split = input.take<int32_t>();
  if (input.one_in(16)) plan.struct_size = input.take<uint32_t>();

  const bool k_grouped = problem.grouping == OCTET_K_GROUPED;
  const bool shared = problem.grouping >= OCTET_CONTIGUOUS && problem.grouping <= OCTET_ALIGNED;
  const int64_t rows = shared                             ? take_size(input)
                       : problem.grouping == OCTET_MASKED ? problem.max_m
                                                          : problem.m;
  const int64_t k =
      k_grouped ? input.pick<int64_t>({0, 128, 1 << 20, take_size(input)}) : problem.k;
  octet_gemm_args args;
  octet_gemm_args_init(&args);
  if (input.one_in(16)) args.struct_size = input.take<uint32_t>();
  args.a = take_matrix(input, rows, k);
  args.b = take_matrix(input, problem.n, k);
  args.d = take_matrix(input, rows, problem.n);
  args.c = input.one_in(3) ? args.d : take_matrix(input, rows, problem.n);
  args.sfa = take_scales(input, problem.sfa_layout);
  args.sfb = take_scales(input, problem.sfb_layout);
  args.bias = take_pointer(input);
  args.bias_group_stride = stride(input, 128);
  args.group_index = take_pointer(input);
  args.group_offsets = take_pointer(input);
  args.group_ends = take_pointer(input);
  args.group_counts = take_pointer(input);
  args.workspace = take_pointer(input);
  args.workspace_bytes = input.one_in(2) ? INT64_MAX : input.wild();

  const octet_code code = octet_check(&plan, &args);
  if (code != OCTET_OK) {
    promise_sentence();
    promise(code == OCTET_INVALID_ARGUMENT, "a rule broken is an invalid argument");
    // Each of these asks the check again: one of them a run, in turn.
    switch (input.between(0, 2)) {
      case 0:
        promise(octet_ref_run(&plan, &args) == code, "a run refuses what the check refuses");
        break;
      case 1:
        promise(octet_cpu_run(&plan, &args, nullptr, nullptr) == code, "so does the other backend");
        break;
      default: promise(octet_validate(&plan, &args) == code, "and so does validation"); break;
    }
  } else {
    promise(octet_check(&plan, &args) == OCTET_OK, "the same question, the same answer");
  }
  return 0;
}
