// The few types and values of cuBLASLt that the benchmark speaks, as its library has them: found at
// run time (it is optional), so its header is not needed to build. A unit test compares them with
// the toolkit's header where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octet::tool::lt {

using Status = int;  // 0 is success
using Handle = void*;
using MatmulDesc = void*;
using Layout = void*;
using Preference = void*;
using CudaStream = void*;

struct Algo {
  std::uint64_t data[8];
};
struct HeuristicResult {
  Algo algo;
  std::size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

enum DataType : int { kF32 = 0, kF16 = 2, kBf16 = 14, kE4m3 = 28 };
enum ComputeType : int { kCompute32F = 68 };
enum Operation : int { kNormal = 0, kTransposed = 1 };
enum DescAttribute : int {
  kTransA = 3,
  kTransB = 4,
  kScalePointerA = 17,
  kScalePointerB = 18,
  kFastAccum = 25,
  kScaleModeA = 31,
  kScaleModeB = 32
};
enum ScaleMode : int { kScalar = 0, kVec128 = 4, kBlock128x128 = 5 };
enum LayoutAttribute : int { kBatchCount = 5, kBatchStride = 6 };
enum PreferenceAttribute : int { kWorkspaceBytes = 1 };

struct Functions {
  std::size_t (*version)();
  Status (*create)(Handle*);
  Status (*destroy)(Handle);
  const char* (*status_string)(Status);
  Status (*desc_create)(MatmulDesc*, int compute, int scale_type);
  Status (*desc_destroy)(MatmulDesc);
  Status (*desc_set)(MatmulDesc, int attribute, const void*, std::size_t);
  Status (*layout_create)(Layout*, int type, std::uint64_t rows, std::uint64_t cols,
                          std::int64_t ld);
  Status (*layout_destroy)(Layout);
  Status (*layout_set)(Layout, int attribute, const void*, std::size_t);
  Status (*preference_create)(Preference*);
  Status (*preference_destroy)(Preference);
  Status (*preference_set)(Preference, int attribute, const void*, std::size_t);
  Status (*heuristic)(Handle, MatmulDesc, Layout a, Layout b, Layout c, Layout d, Preference,
                      int asked, HeuristicResult*, int* found);
  Status (*matmul)(Handle, MatmulDesc, const void* alpha, const void* a, Layout, const void* b,
                   Layout, const void* beta, const void* c, Layout, void* d, Layout, const Algo*,
                   void* workspace, std::size_t workspace_bytes, CudaStream);
};

}  // namespace octet::tool::lt
