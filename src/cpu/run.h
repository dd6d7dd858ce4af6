// Runs dense pieces on the processor with the bits of src/ref.
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
  int threads = 0;
  int64_t scratch_bytes = 0;
};

bool isa_available(octet_isa isa);
Status run(const core::Work& work, const Options& options, Report* report);

}  // namespace oct::cpu
