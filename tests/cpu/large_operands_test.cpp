// Operands of more than 2^31 elements (field reports F01 and F14): every index must be 64-bit. The
// whole operand is declared, in memory that is not there until touched, and only far pieces of it
// are owned, so that addresses beyond 32 bits are really computed without gigabytes and minutes.
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/octet.hpp"
#include "support/buffers.h"
#include "support/fill.h"
#include "support/host_case.h"

namespace {

using namespace oct::testing_support;

octet_gemm_problem problem(const std::string& text) {
  return octet::GemmProblem::parse(text).value();
}

// Memory that costs nothing until it is touched, for operands of more than 2^31 elements.
class Sparse {
 public:
  explicit Sparse(int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Sparse() {
    if (ok()) munmap(data_, bytes_);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  bool ok() const { return data_ != MAP_FAILED; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  std::size_t bytes_;
  void* data_;
};

// 73728 x 36864 x 128: D has 2.7e9 elements. All of it would be 5 GB and minutes of the reference,
// so the same D is declared, in memory that is not there until touched, and the groups own its last
// rows alone.
TEST(LargeOperands, F01_MoreThan32BitsOfOutputs) {
  const int64_t m = 73728, n = 36864, k = 128, own = 3;
  const Sparse d(m * n * 2);
  ASSERT_TRUE(d.ok());
  Random random(1);
  Buffer a(m * k), b(n * k), rows(own * n * 2);
  fill_elements(random, DataClass::kGaussian, OCTET_E4M3, a.data() + (m - own) * k, own * k);
  fill_elements(random, DataClass::kGaussian, OCTET_E4M3, b.data(), n * k);
  std::vector<float> sfa(static_cast<std::size_t>(m), 0.5f),
      sfb(static_cast<std::size_t>(n / 128), 0.25f);
  const int32_t offsets[] = {static_cast<int32_t>(m - own), static_cast<int32_t>(m)};
  octet::GemmArgs args;
  args.a = octet::matrix(a.data(), m, k);
  args.b = octet::matrix(b.data(), n, k);
  args.d = octet::matrix(d.as<void>(), m, n);
  args.sfa = octet::row_major_scales(sfa.data(), 1);
  args.sfb = octet::row_major_scales(sfb.data(), 1);
  args.group_offsets = offsets;
  const octet_gemm_plan plan = cpu_plan(problem("offsets_g1m73728n36864k128_sfarow"));
  ASSERT_EQ(octet_cpu_run(&plan, &args, nullptr, nullptr), OCTET_OK) << octet_status_message();

  octet::GemmArgs dense = args;
  dense.a = octet::matrix(a.data() + (m - own) * k, own, k);
  dense.d = octet::matrix(rows.data(), own, n);
  const octet_gemm_plan dense_plan = cpu_plan(problem("dense_m3n36864k128_sfarow"));
  ASSERT_EQ(octet_ref_run(&dense_plan, &dense), OCTET_OK) << octet_status_message();
  EXPECT_EQ(std::memcmp(d.as<char>() + (m - own) * n * 2, rows.data(),
                        static_cast<std::size_t>(own * n * 2)),
            0);
  EXPECT_EQ(d.as<uint16_t>()[(m - own) * n - 1], 0);  // the row before is untouched
}

// Sum of K = 300,032 and M = 7168: A has more than 2^31 elements. Declared in full; the groups that
// stand at its end hold data, so the far addresses are really computed.
TEST(LargeOperands, F14_MoreThan32BitsOfInputs) {
  const int64_t m = 7168, n = 5, k = 300032, starts[] = {0, 299776, 299904};
  const Sparse a(m * k), sfa(m * (k / 128) * 4);
  ASSERT_TRUE(a.ok() && sfa.ok());
  Buffer b(n * k), d(3 * m * n * 4), want(m * n * 4);
  std::vector<float> sfb(static_cast<std::size_t>(8 * (k / 128)), 0.5f);
  const int64_t counts[] = {0, 128, 128};
  Random random(14);
  for (int g = 1; g < 3; ++g) {
    for (int64_t r = 0; r < m; ++r) {
      fill_elements(random, DataClass::kGaussian, OCTET_E4M3, a.as<uint8_t>() + r * k + starts[g],
                    128);
      sfa.as<float>()[r + starts[g] / 128 * m] = 0.25f;
    }
    for (int64_t r = 0; r < n; ++r) {
      fill_elements(random, DataClass::kGaussian, OCTET_E4M3, b.data() + r * k + starts[g], 128);
    }
  }
  octet::GemmArgs args;
  args.a = octet::matrix(a.as<void>(), m, k);
  args.b = octet::matrix(b.data(), n, k);
  args.d = octet::matrix(d.data(), m, n, n, m * n);
  args.sfa = octet::column_major_scales(sfa.as<float>(), m);
  args.sfb = octet::column_major_scales(sfb.data(), 8);
  args.group_offsets = starts;
  args.group_counts = counts;
  const octet_gemm_plan plan = cpu_plan(problem("kgrouped_g3m7168n5k128_f32_i64"));
  ASSERT_EQ(octet_cpu_run(&plan, &args, nullptr, nullptr), OCTET_OK) << octet_status_message();
  for (int g = 1; g < 3; ++g) {
    octet::GemmArgs one = args;
    one.a = octet::matrix(a.as<uint8_t>() + starts[g], m, 128, k);
    one.b = octet::matrix(b.data() + starts[g], n, 128, k);
    one.d = octet::matrix(want.data(), m, n);
    one.sfa.data += starts[g] / 128 * m;
    one.sfb.data += starts[g] / 128 * 8;
    const octet_gemm_plan dense = cpu_plan(problem("dense_m7168n5k128_1d1d_f32"));
    ASSERT_EQ(octet_ref_run(&dense, &one), OCTET_OK) << octet_status_message();
    EXPECT_EQ(std::memcmp(d.as<float>() + g * m * n, want.data(),
                          static_cast<std::size_t>(m * n * 4)),
              0)
        << g;
  }
  EXPECT_EQ(d.as<float>()[0], 0.0f);
}

}  // namespace
