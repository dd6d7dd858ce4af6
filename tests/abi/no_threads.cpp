// A machine that gives no more threads: pthread_create() fails, as it does at a limit of processes
// or of memory. The call does all of the work itself and says so in its report.
#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "octet/octet.hpp"

namespace {
int allowed = 0;  // threads that may still be created
int refused = 0;
}  // namespace

// Stands before the C library's for the whole program, the shared library included.
extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t*,
                                                                     void* (*body)(void*),
                                                                     void* argument) noexcept {
  if (allowed == 0) {
    ++refused;
    return EAGAIN;
  }
  --allowed;
  body(argument);  // at once: a thread that has ended when its creator looks
  *thread = pthread_self();
  return 0;
}
extern "C" __attribute__((visibility("default"))) int pthread_join(pthread_t, void**) { return 0; }

int main() {
  using namespace octet;
  constexpr std::int64_t kSize = 256;
  alignas(16) static std::uint8_t a[kSize * kSize], b[kSize * kSize];
  alignas(16) static float sfa[kSize * 2], sfb[4];
  for (auto& x : a) x = 0x38;  // 1.0
  for (auto& x : b) x = 0x38;
  for (auto& x : sfa) x = 0.5f;
  for (auto& x : sfb) x = 1.0f;
  static float d[kSize * kSize];
  const GemmPlan plan = plan_gemm(GemmProblem::parse("dense_m256n256k256_f32").value(),
                                  DeviceSpec::preset("cpu").value())
                            .value();
  GemmArgs args;
  args.a = matrix(a, kSize, kSize);
  args.b = matrix(b, kSize, kSize);
  args.d = matrix(d, kSize, kSize);
  args.sfa = column_major_scales(sfa, kSize);
  args.sfb = row_major_scales(sfb, 2);
  cpu::Options options;
  options.threads = 4;
  int failures = 0;
  for (int given = 0; given < 4; ++given) {
    allowed = given;
    refused = 0;
    std::memset(d, 0, sizeof d);
    const octet_cpu_report report = cpu::run(plan, args, options).value();
    allowed = 0;
    int wrong = 0;
    for (const float x : d) wrong += x != 128.0f ? 1 : 0;
    // After the first refusal no more are asked for.
    if (report.threads != given + 1 || refused != (given < 3 ? 1 : 0) || wrong > 0) {
      std::printf("FAILED: %d threads given, %d refused: reported %d, %d wrong elements\n", given,
                  refused, report.threads, wrong);
      ++failures;
    }
  }
  if (failures == 0) std::printf("a call without threads does its work alone and says so\n");
  return failures == 0 ? 0 : 1;
}
