// What an instruction set offers to the blocked loops of run.cpp: pointers to a handful of
// functions over packed blocks. One block is 128 elements of K of some rows of A, or of one panel
// of columns of D (rows of B). The same table for every instruction set, so that run.cpp knows none
// of them.
#pragma once

#include <cstdint>

#include "octet/octet.h"

namespace oct::cpu {

inline constexpr int kBlock = 128;      // elements of K in one packed block
inline constexpr int kMaxRows = 256;    // rows of A that one call of multiply() takes
inline constexpr int kMaxColumns = 64;  // columns of the widest panel

// Functions for one type of operand. `rows` and `columns` of the pointers are given in elements of
// the operand; missing rows, columns and elements of K are packed as zeros.
struct OperandKernel {
  int row_tile;         // packed rows of A come in multiples of this
  int columns;          // width of a panel
  int step;             // elements of K that one tensor-core instruction takes: 32 or 16
  int64_t a_row_bytes;  // packed bytes of one row
  int64_t b_bytes;      // packed bytes of a panel

  void (*pack_a)(const void* a, int64_t ld, int rows, int k, void* packed);
  // `rows` is what multiply() will be called with: for a few, a kernel may prepare less.
  void (*pack_b)(const void* b, int64_t ld, int columns, int k, int rows, void* packed);

  // Runs `steps` instructions of the chain for every row and column. chain[row * columns + column]
  // is the accumulator; `first` says that the chain starts here, whatever `chain` holds. Leaves the
  // rounding mode at nearest even.
  void (*multiply)(const void* a, const void* b, int rows, int steps, bool first, float* chain);
};

struct Kernel {
  octet_isa isa;
  OperandKernel e4m3, bf16;
  // acc = fma(sfa[row] * sfb[column], chain, acc) over rows x e4m3.columns, rounding to nearest
  // even.
  void (*promote)(const float* chain, const float* sfa, const float* sfb, int rows, float* acc);
};

// Null where this build or this processor has no such instructions.
const Kernel* portable_kernel();
const Kernel* avx2_kernel();
const Kernel* avx512_kernel();

}  // namespace oct::cpu
