// See run.h. The first version: the normative loops, one piece after the other.
#include "cpu/run.h"

#include "core/refusals.h"
#include "ref/gemm.h"

namespace oct::cpu {

bool isa_available(octet_isa isa) { return isa == OCTET_ISA_AUTO || isa == OCTET_ISA_PORTABLE; }

Status run(const core::Work& work, const Options& options, Report* report) {
  if (!isa_available(options.isa)) {
    return core::refuse(core::Rule::kIsa, {{"got", core::text(options.isa)}, {"want", "portable"}});
  }
  ref::run(work);
  if (report != nullptr) *report = {OCTET_ISA_PORTABLE, 1, 0};
  return {};
}

}  // namespace oct::cpu
