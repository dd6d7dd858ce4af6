// See isa.h. The processor is asked by the compiler's run-time library, which also asks whether the
// operating system saves the wide registers.
#include "cpu/isa.h"

namespace oct::cpu {
namespace {

#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bitalg") &&
         __builtin_cpu_supports("avx512vnni");
}
#endif

}  // namespace

const Kernel* find_kernel(octet_isa isa) {
  switch (isa) {
    case OCTET_ISA_AUTO:
      for (const octet_isa wide : {OCTET_ISA_AVX512, OCTET_ISA_AVX2}) {
        if (const Kernel* kernel = find_kernel(wide)) return kernel;
      }
      return portable_kernel();
    case OCTET_ISA_PORTABLE: return portable_kernel();
#if defined(__x86_64__)
    case OCTET_ISA_AVX2: return has_avx2() ? avx2_kernel() : nullptr;
    case OCTET_ISA_AVX512: return has_avx512() ? avx512_kernel() : nullptr;
#endif
    default: return nullptr;
  }
}

const char* isa_name(octet_isa isa) {
  switch (isa) {
    case OCTET_ISA_AUTO: return "auto";
    case OCTET_ISA_PORTABLE: return "portable";
    case OCTET_ISA_AVX2: return "avx2";
    case OCTET_ISA_AVX512: return "avx512";
    default: return "unknown";
  }
}

std::string available_isas() {
  std::string names;
  for (const octet_isa isa : {OCTET_ISA_PORTABLE, OCTET_ISA_AVX2, OCTET_ISA_AVX512}) {
    if (find_kernel(isa) == nullptr) continue;
    if (!names.empty()) names += ", ";
    names += isa_name(isa);
  }
  return names;
}

}  // namespace oct::cpu
