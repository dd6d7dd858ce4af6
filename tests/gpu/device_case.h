// One problem with its operands in device memory, laid out as hostile as the rules allow: odd
// leading dimensions, poisoned padding (NaN codes, NaN scales), guard bands around D that are
// compared too.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/float_types.h"
#include "core/math.h"
#include "core/problem.h"
#include "octet/octet.h"
#include "reference_gemm.h"

namespace oct::test {

inline void cuda_ok(cudaError_t e, const char* what, int line) {
  if (e == cudaSuccess) return;
  std::printf("FAILED: %s: %s (line %d)\n", what, cudaGetErrorString(e), line);
  std::fflush(stdout);
  std::_Exit(1);
}
#define OCT_CUDA(call) ::oct::test::cuda_ok((call), #call, __LINE__)

// Hands out pieces of one large allocation.
class Arena {
 public:
  explicit Arena(std::size_t bytes) : size_(bytes) {
    OCT_CUDA(cudaMalloc(reinterpret_cast<void**>(&base_), bytes));
  }
  void reset() { used_ = 0; }
  void release() {  // all of it
    OCT_CUDA(cudaFree(base_));
    base_ = nullptr;
    size_ = used_ = 0;
  }
  std::size_t size() const { return size_; }
  void* take(int64_t bytes) {
    const std::size_t want = (static_cast<std::size_t>(bytes) + 255) / 256 * 256;
    if (used_ + want > size_) {
      std::printf("FAILED: the test's memory is too small (%zu + %zu)\n", used_, want);
      std::_Exit(1);
    }
    void* p = base_ + used_;
    used_ += want;
    return p;
  }

 private:
  char* base_ = nullptr;
  std::size_t size_, used_ = 0;
};

struct CaseOptions {
  Codes codes = Codes::kGaussian;
  ScaleKind scales = ScaleKind::kOrdinary;
  int64_t a_pad = 0, b_pad = 0, d_pad = 0, c_pad = 0;  // elements added to the least pitch
  int64_t d_shift = 0;                                 // elements that D starts after alignment
  int64_t sfa_pad = 0;                                 // added to the least stride of SFA
  bool c_is_d = false, share_b = false, special = false;
  bool one_sfa = false, one_sfb = false;  // one scale for everything
  bool share_scales = false;              // batches share SFA and SFB
  uint64_t seed = 1;
};

struct DeviceCase {
  octet_gemm_problem problem{};
  octet_gemm_args args{};
  ReferenceGemm reference{};
  void *d_buffer = nullptr, *want_buffer = nullptr;
  int64_t d_bytes = 0;
  uint64_t poison_seed = 0;

  void poison(cudaStream_t stream) const {
    fill_bytes(d_buffer, d_bytes, poison_seed, stream);
    fill_bytes(want_buffer, d_bytes, poison_seed, stream);
  }
  void copy_d_to_want(cudaStream_t stream) const {
    OCT_CUDA(cudaMemcpyAsync(want_buffer, d_buffer, static_cast<std::size_t>(d_bytes),
                             cudaMemcpyDeviceToDevice, stream));
  }
};

inline octet_gemm_problem dense_problem(int64_t m, int64_t n, int64_t k, int64_t batches = 1) {
  octet_gemm_problem p = core::default_problem();
  p.m = m;
  p.n = n;
  p.k = k;
  p.groups = batches;
  if (batches != 1) p.grouping = OCTET_BATCHED;
  return p;
}

inline DeviceCase make_case(Arena& arena, const octet_gemm_problem& p, const CaseOptions& o,
                            cudaStream_t s) {
  using core::ceil_div;
  using core::round_up;
  DeviceCase c;
  c.problem = p;
  c.args.struct_size = sizeof c.args;
  const int64_t g = p.groups, blocks = ceil_div(p.k, 128), rows_b = ceil_div(p.n, 128);
  const int64_t a_ld = round_up(p.k, 16) + o.a_pad, b_ld = round_up(p.k, 16) + o.b_pad;
  const int64_t a_batch = p.m * a_ld + 16 * (o.seed % 3), b_one = p.n * b_ld + 16 * (o.seed % 5);
  const int64_t b_batch = o.share_b ? 0 : b_one;
  const auto operand = [&](int64_t rows, int64_t ld, int64_t one, bool shared, uint64_t salt) {
    const int64_t count = shared ? 1 : g;
    auto* data = static_cast<uint8_t*>(arena.take(count * one + 256));
    OCT_CUDA(cudaMemsetAsync(data, 0x7f, static_cast<std::size_t>(count * one + 256), s));
    fill_codes(data, rows, p.k, ld, count, one, o.codes, o.seed * 1000003 + salt, s);
    return data;
  };
  auto* a = operand(p.m, a_ld, a_batch, false, 1);
  auto* b = operand(p.n, b_ld, b_one, o.share_b, 2);

  // SFA
  int64_t sfa_row, sfa_k;
  if (p.sfa_layout == OCTET_ROW_MAJOR) {
    sfa_row = blocks + o.sfa_pad;
    sfa_k = 1;
  } else if (p.sfa_layout == OCTET_COLUMN_MAJOR_ODD) {
    sfa_row = 1;
    sfa_k = p.m + o.sfa_pad;
  } else {
    sfa_row = 1;
    sfa_k = round_up(p.m, 4) + 4 * o.sfa_pad;
  }
  const int64_t sfa_batch = round_up(p.m * sfa_row + blocks * sfa_k + 4, 4);
  auto* sfa_base = static_cast<float*>(arena.take((g * sfa_batch + 64) * 4));
  OCT_CUDA(cudaMemsetAsync(sfa_base, 0xff, static_cast<std::size_t>((g * sfa_batch + 64) * 4), s));
  float* sfa = sfa_base + (p.sfa_layout == OCTET_COLUMN_MAJOR ? 0 : o.sfa_pad % 4);
  fill_scales(sfa, p.m, blocks, sfa_row, sfa_k, g, sfa_batch, o.scales, o.seed * 77 + 3, s);
  // SFB
  const bool sfb_rows = p.sfb_layout == OCTET_ROW_MAJOR;
  const int64_t sfb_row = sfb_rows ? blocks + o.sfa_pad : 1,
                sfb_k = sfb_rows ? 1 : rows_b + o.sfa_pad;
  const int64_t sfb_batch = rows_b * sfb_row + blocks * sfb_k + 1;
  auto* sfb = static_cast<float*>(arena.take((g * sfb_batch + 64) * 4));
  OCT_CUDA(cudaMemsetAsync(sfb, 0xff, static_cast<std::size_t>((g * sfb_batch + 64) * 4), s));
  fill_scales(sfb, rows_b, blocks, sfb_row, sfb_k, g, sfb_batch, o.scales, o.seed * 79 + 4, s);

  // D with guard bands, and the buffer that the reference fills.
  const int64_t element = core::size_of(p.d_type);
  const int64_t d_ld = p.n + o.d_pad, d_batch = p.m * d_ld + o.d_pad * 3;
  const int64_t guard = 512;
  c.d_bytes = round_up((g * d_batch + o.d_shift) * element + 2 * guard, 256);
  c.d_buffer = arena.take(c.d_bytes);
  c.want_buffer = arena.take(c.d_bytes);
  c.poison_seed = o.seed * 31 + 7;
  const auto inside = [&](void* buffer) {
    return static_cast<void*>(static_cast<char*>(buffer) + guard + o.d_shift * element);
  };
  // C
  void* add = nullptr;
  int64_t c_ld = d_ld, c_batch = d_batch;
  if (p.accumulate && !o.c_is_d) {
    c_ld = p.n + o.c_pad;
    c_batch = p.m * c_ld;
    const int64_t count = g * c_batch + 8;
    add = arena.take(count * element);
    fill_values(add, p.d_type, count, o.special, o.seed * 83 + 5, s);
  }
  void* bias = nullptr;
  const int64_t bias_batch = p.n + 3;
  if (p.bias_type != OCTET_NONE) {
    bias = arena.take((g * bias_batch + 8) * core::size_of(p.bias_type));
    fill_values(bias, p.bias_type, g * bias_batch + 8, o.special, o.seed * 89 + 6, s);
  }

  octet_gemm_args& x = c.args;
  x.a = {a, p.m, p.k, a_ld, g > 1 ? a_batch : 0};
  x.b = {b, p.n, p.k, b_ld, g > 1 ? b_batch : 0};
  x.d = {inside(c.d_buffer), p.m, p.n, d_ld, g > 1 ? d_batch : 0};
  if (p.accumulate) {
    x.c = o.c_is_d ? x.d : octet_matrix{add, p.m, p.n, c_ld, g > 1 ? c_batch : 0};
  }
  x.sfa = {sfa, sfa_row, sfa_k, g > 1 ? sfa_batch : 0};
  x.sfb = {sfb, sfb_row, sfb_k, g > 1 ? sfb_batch : 0};
  x.bias = bias;
  x.bias_group_stride = g > 1 ? bias_batch : 0;

  if (o.share_scales) x.sfa.group_stride = x.sfb.group_stride = 0;
  if (o.one_sfa) x.sfa = {sfa, 0, 0, 0};
  if (o.one_sfb) x.sfb = {sfb, 0, 0, 0};

  ReferenceGemm& r = c.reference;
  r.m = p.m;
  r.n = p.n;
  r.k = p.k;
  r.batches = g;
  r.a = a;
  r.b = b;
  r.a_ld = a_ld;
  r.b_ld = b_ld;
  r.a_batch = a_batch;
  r.b_batch = b_batch;
  r.sfa = sfa;
  r.sfb = sfb;
  r.sfa_row = x.sfa.row_stride;
  r.sfa_k = x.sfa.k_stride;
  r.sfa_batch = x.sfa.group_stride;
  r.sfb_row = x.sfb.row_stride;
  r.sfb_k = x.sfb.k_stride;
  r.sfb_batch = x.sfb.group_stride;
  r.d = inside(c.want_buffer);
  r.c = !p.accumulate ? nullptr : o.c_is_d ? r.d : add;
  r.d_ld = d_ld;
  r.d_batch = d_batch;
  r.c_ld = c_ld;
  r.c_batch = c_batch;
  r.d_type = p.d_type;
  r.bias_type = p.bias_type;
  r.bias = bias;
  r.bias_batch = bias_batch;
  r.split = 1;
  return c;
}

}  // namespace oct::test
