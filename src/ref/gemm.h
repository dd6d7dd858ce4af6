// The law: dense GEMMs computed element by element as docs/numerics.md section 2 says, with the
// tensor-core model of tensor_core.h. Slow, and short enough to be read in ten minutes. Everything
// faster is compared with this, bit for bit.
#pragma once

#include "core/views.h"

namespace oct::ref {

void gemm(const core::DenseView& view);
void fill_zeros(const core::ZeroRows& rows);
void run(const core::Work& work);

}  // namespace oct::ref
