// Runs dense pieces on the processor with the bits of src/ref: cuts them into tiles, hands the
// tiles to threads, chooses the instruction set.
#pragma once

#include <cstdint>

#include "core/status.h"
#include "core/views.h"

namespace oct::cpu {

struct Options {
  int threads = 0;  // 0: all
  octet_isa isa = OCTET_ISA_AUTO;
};

struct Report {
  octet_isa isa = OCTET_ISA_PORTABLE;
  int threads = 0;  // that took part; small work takes fewer than were allowed
  int64_t scratch_bytes = 0;
};

// True if this build has the kernels and this processor their instructions.
bool isa_available(octet_isa isa);

// Refuses an instruction set that is not there. `report` may be null. Throws std::bad_alloc.
Status run(const core::Work& work, const Options& options, Report* report);

}  // namespace oct::cpu
