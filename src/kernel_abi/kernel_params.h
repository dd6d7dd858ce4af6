// The one parameter of every GEMM kernel. Filled by src/cuda/launch_params.cpp, read on the device
// from constant memory; nothing here differs between warps.
#pragma once

#include <cstdint>

#include "kernel_abi/group_order.h"
#include "kernel_abi/k_groups.h"
#include "kernel_abi/tile_order.h"

namespace oct::abi {

// A copy-engine descriptor, as the driver encodes it.
struct alignas(64) TensorMap {
  uint64_t words[16] = {};
};

enum class ElementType : uint32_t { kNone = 0, kBf16 = 1, kF16 = 2, kF32 = 3 };

// How an epilogue writes D.
enum class StorePath : uint32_t {
  kCopyEngine = 0,  // BF16 or FP16, no bias, no C, rows 16-byte aligned: staged, stored in boxes
  kPairs = 1,       // no bias, no C: two adjacent elements a store, where D is aligned for it.
                    // Kernels with paired scales: with C too, where it is aligned likewise
  kQuads = 3,       // those kernels alone: four elements
  kRows = 4,        // as kCopyEngine, for what passes through shared memory as FP32 (partial sums;
                    // tokens on WGMMA's N side): 16 bytes of a row a lane
  kElements = 2     // everything else
};

enum LaunchFlags : uint32_t {
  kPlainSfa = 1,      // SFA is row-major or oddly pitched: plain asynchronous loads
  kRingC = 16,        // C passes through the ring (abi::c_columns())
  kPlainSfb = 8,      // likewise SFB, where every row of B has its own
  kDependent = 2,     // launched as a programmatic dependent of the kernel before it
  kEarly = 32,        // ... and the kernel behind it may start before this one has ended
  kWeightsReady = 4,  // B and SFB may be read before that kernel has finished
};

struct Scales {
  const float* data = nullptr;
  int64_t row_stride = 0, k_stride = 0, batch_stride = 0;
};

// Rows of an operand that all batches share.
struct OperandRows {
  const uint8_t* data = nullptr;
  int64_t pitch = 0;
};

struct Output {
  void* data = nullptr;  // D, or C
  int64_t ld = 0, batch_stride = 0;
};

struct KernelParams {
  // First what a kernel reads before its first request, together: every line of constant memory
  // costs a cold miss.
  int32_t stages = 0;                              // of one pipeline
  int32_t exchange = 0, scales = 0, barriers = 0;  // offsets in shared memory
  uint32_t flags = 0;
  int32_t split = 1;          // ranges of K in all
  int32_t cluster_split = 1;  // CTAs of a cluster that share them
  int32_t k_blocks = 0;
  TileOrder order;
  RangeCut cut;  // of k_blocks into `split`
  // 1: has a batch dimension, 0: shared by all
  int32_t a_batch = 0, b_batch = 0, sfa_batch = 0, sfb_batch = 0, c_batch = 0;
  int32_t m = 0, n = 0;
  int32_t share = 0;       // units of partial sums that a CTA receives
  Scales sfb;              // row: column of D / 128, or column of D
  TensorMap b, a, sfa, d;  // [k, n, batch], [k, m, batch], [m, k-block, batch], [n, m, batch];
                           // with kRingC, d is C's
  TensorMap sfb_box;       // [n, k-block, batch], paired scales only
  ElementType d_type = ElementType::kBf16, bias_type = ElementType::kNone;
  StorePath store = StorePath::kElements;
  Scales sfa_plain;
  Output out, add;  // D; C or null
  const void* bias = nullptr;
  int64_t bias_batch_stride = 0;
  OperandRows b_rows;             // what `b` describes, where b_batch is 0
  alignas(64) GroupOrder groups;  // kernels grouped over M only
  KGroups k_groups;               // kernels grouped over K only
};

}  // namespace oct::abi
