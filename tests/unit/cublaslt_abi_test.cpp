// The declarations of cuBLASLt that the benchmark brings along against the toolkit's header, where
// there is one.
#include "cublaslt_abi.h"

#include <gtest/gtest.h>
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

namespace {

TEST(CublasLtAbi, IsTheToolkits) {
#if __has_include(<cublasLt.h>)
  namespace lt = octet::tool::lt;
  static_assert(sizeof(lt::Algo) == sizeof(cublasLtMatmulAlgo_t));
  static_assert(sizeof(lt::HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
  static_assert(offsetof(lt::HeuristicResult, state) ==
                offsetof(cublasLtMatmulHeuristicResult_t, state));
  static_assert(offsetof(lt::HeuristicResult, waves) ==
                offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));
  const std::pair<int, int> pairs[] = {
      {lt::kF32, CUDA_R_32F},
      {lt::kF16, CUDA_R_16F},
      {lt::kBf16, CUDA_R_16BF},
      {lt::kE4m3, CUDA_R_8F_E4M3},
      {lt::kCompute32F, CUBLAS_COMPUTE_32F},
      {lt::kNormal, CUBLAS_OP_N},
      {lt::kTransposed, CUBLAS_OP_T},
      {lt::kTransA, CUBLASLT_MATMUL_DESC_TRANSA},
      {lt::kTransB, CUBLASLT_MATMUL_DESC_TRANSB},
      {lt::kScalePointerA, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER},
      {lt::kScalePointerB, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER},
      {lt::kFastAccum, CUBLASLT_MATMUL_DESC_FAST_ACCUM},
      {lt::kScaleModeA, CUBLASLT_MATMUL_DESC_A_SCALE_MODE},
      {lt::kScaleModeB, CUBLASLT_MATMUL_DESC_B_SCALE_MODE},
      {lt::kScalar, CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F},
      {lt::kBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT},
      {lt::kBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET},
      {lt::kWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES},
  };
  for (const auto& [ours, theirs] : pairs) EXPECT_EQ(ours, theirs);
#if CUBLAS_VERSION >= 120900
  EXPECT_EQ(static_cast<int>(lt::kVec128), CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
  EXPECT_EQ(static_cast<int>(lt::kBlock128x128), CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F);
#endif
#else
  GTEST_SKIP() << "no cublasLt.h here";
#endif
}

}  // namespace
