// Whole products recorded on an H200 against both backends of the processor, bit for bit; and the
// way through the file, on one that the processor makes.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/run.h"
#include "golden/gemm_recording.h"
#include "kernel_abi/kernel_table.h"
#include "plan/candidates.h"
#include "plan/device_presets.h"
#include "support/sanitized.h"

namespace oct::golden {
namespace {

// What the recording held when it was made; the table may grow or shrink after that.
constexpr std::size_t kFewestProblems = 98, kFewestKernels = 33, kFewestVariants = 200;
constexpr std::size_t kMostBytes = 1'000'000;

struct Coverage {
  std::set<std::string> kernels;
  std::set<std::pair<std::string, uint32_t>> variants;  // kernel and split
  explicit Coverage(const GemmFile& file) {
    for (const GemmRecord& r : file.records) {
      for (const GemmRun& run : r.runs) {
        kernels.insert(run.kernel);
        variants.insert({run.kernel, r.split});
      }
    }
  }
};

octet_device_spec h200() {
  octet_device_spec device;
  EXPECT_TRUE(plan::device_preset("h200", device).ok());
  return device;
}

// All of them; under sanitizers, which look at how and not at what is computed, a part.
void expect_agreement(std::vector<GemmRecord> records) {
  if (testing_support::kSanitized) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < records.size(); i += 5) records[kept++] = records[i];
    records.resize(kept);
  }
  for (const octet_isa isa : {OCTET_ISA_PORTABLE, OCTET_ISA_AVX2, OCTET_ISA_AVX512}) {
    if (!cpu::isa_available(isa)) continue;
    const Compute compute = compute_on_cpu(isa);
    for (const GemmRecord& r : records) {
      EXPECT_EQ(disagreement(r, compute), "") << "instruction set " << isa;
    }
  }
  const Compute reference = compute_by_reference();
  for (const GemmRecord& r : records) {
    EXPECT_EQ(disagreement(r, reference), "") << "by the normative loops";
  }
}

// Fails while the file is missing: record_gemms makes it, on a machine with a device.
TEST(GoldenProducts, OfAnH200) {
  const std::vector<uint8_t> bytes = read_bytes(std::string(OCTET_GOLDEN_DIR) + "/gemms.bin");
  EXPECT_LE(bytes.size(), kMostBytes);
  const GemmFile file = unpack_gemms(bytes);
  EXPECT_NE(file.computed_by.find("H200"), std::string::npos) << file.computed_by;
  EXPECT_GE(file.records.size(), kFewestProblems);
  const Coverage coverage(file);
  EXPECT_GE(coverage.kernels.size(), kFewestKernels);
  EXPECT_GE(coverage.variants.size(), kFewestVariants);
  for (const std::string& kernel : coverage.kernels) {
    EXPECT_TRUE(abi::parse_kernel(kernel.c_str()).valid) << kernel;
  }
  expect_agreement(file.records);
}

// The cases reach every kernel of the table with every split that it has.
TEST(GoldenProducts, CasesReachEveryKernelAndSplit) {
  const octet_device_spec device = h200();
  GemmFile file;
  for (std::size_t i = 0; i < std::size(kGemmCases); ++i) {
    const octet_gemm_problem problem = case_problem(kGemmCases[i], i);
    GemmRecord r;
    r.split = static_cast<uint32_t>(problem.split > 0 ? problem.split : 1);
    for (const octet_gemm_plan& plan : case_plans(problem, device)) {
      r.runs.push_back({plan.kernel, static_cast<uint32_t>(plan.sms)});
    }
    EXPECT_FALSE(r.runs.empty()) << kGemmCases[i].problem;
    file.records.push_back(std::move(r));
  }
  const Coverage coverage(file);
  for (const abi::KernelRow& row : abi::kKernels) {
    const abi::TileConfig tile = abi::parse_kernel(row.name);
    if (tile.grouped || tile.paired) continue;  // 1D2D dense problems are recorded
    for (int over = 1; over <= plan::kLargestCluster; ++over) {
      if (over > 1 && !tile.splits_over_cluster()) break;
      const auto split = static_cast<uint32_t>(over * tile.k_groups);
      EXPECT_TRUE(coverage.variants.count({row.name, split})) << row.name << " split " << split;
    }
  }
  EXPECT_GE(coverage.variants.size(), kFewestVariants);
  EXPECT_GE(file.records.size(), kFewestProblems);
}

// Inputs are the same on every machine: what the generator gives was written down once.
TEST(GoldenProducts, InputsAreTheSameEverywhere) {
  uint64_t sum = 0;
  for (std::size_t i = 0; i < std::size(kGemmCases); ++i) {
    const GemmCase& c = kGemmCases[i];
    sum = sum * 31 + GemmInputs(case_problem(c, i), c.input_class, c.scales).checksum();
  }
  EXPECT_EQ(sum, 0x8676dfb0a0337ec9u) << std::hex << sum;
}

// A recording of the processor's own, so that the way through the file is tested without a device.
class MadeHere : public testing::Test {
 protected:
  void SetUp() override {
    const std::span<const GemmCase> cases(kGemmCases);
    recording_ = record(cases.subspan(40, 30), h200(), compute_on_cpu(OCTET_ISA_AUTO));
    ASSERT_EQ(recording_.wrong, std::vector<std::string>{});
    ASSERT_EQ(recording_.file.records.size(), 30u);
    recording_.file.computed_by = "this processor";
  }
  Recording recording_;
};

TEST_F(MadeHere, ComesBackAndAgrees) {
  const GemmFile file = unpack_gemms(pack(recording_.file));
  EXPECT_EQ(file.computed_by, "this processor");
  ASSERT_EQ(file.records.size(), recording_.file.records.size());
  EXPECT_EQ(Coverage(file).variants, Coverage(recording_.file).variants);
  EXPECT_EQ(pack(file), pack(recording_.file));
  expect_agreement(file.records);
}

TEST_F(MadeHere, DifferencesAreNamed) {
  const Compute compute = compute_on_cpu(OCTET_ISA_AUTO);
  GemmRecord r = recording_.file.records[0];  // dense_m11n150k390, BF16
  ASSERT_EQ(disagreement(r, compute), "");
  r.d[2 * (150 * 7 + 149) + 1] ^= 1;
  EXPECT_NE(disagreement(r, compute).find("1 elements differ, the first at group 0 [7, 149]"),
            std::string::npos)
      << disagreement(r, compute);
  r = recording_.file.records[0];
  r.d.pop_back();
  EXPECT_NE(disagreement(r, compute), "");
  r = recording_.file.records[0];
  r.input_checksum ^= 1;
  EXPECT_NE(disagreement(r, compute).find("the inputs drawn here"), std::string::npos);
  r = recording_.file.records[0];
  r.input_class = kClasses;
  EXPECT_NE(disagreement(r, compute).find("absurd"), std::string::npos);
  r = recording_.file.records[29];
  ASSERT_GT(r.split, 1u) << r.problem;
  r.split = 1;
  EXPECT_NE(disagreement(r, compute), "");
  // Other ranges of K, other bits.
  const std::size_t option = r.problem.find("_split");
  r.problem.erase(option, r.problem.find('_', option + 1) - option);
  EXPECT_NE(disagreement(r, compute).find("elements differ"), std::string::npos) << r.problem;
}

// A kernel that gives other bits than the kernel before it, or writes outside D, is not recorded.
TEST_F(MadeHere, RecordingRefusesWhatIsWrong) {
  const Compute right = compute_on_cpu(OCTET_ISA_AUTO);
  const std::span<const GemmCase> one(kGemmCases + 4, 1);
  const auto recorded = [&](auto spoil) {
    return record(one, h200(),
                  [&](const octet_gemm_plan& plan, const GemmInputs& inputs, uint8_t* d_memory) {
                    const Status s = right(plan, inputs, d_memory);
                    if (std::string(plan.kernel) == "normal_m128n160") spoil(inputs, d_memory);
                    return s;
                  });
  };
  const Recording bits = recorded([](const GemmInputs& inputs, uint8_t* d) {
    static_cast<uint8_t*>(inputs.args(inputs.host_memory(d)).d.data)[0] ^= 1;
  });
  ASSERT_EQ(bits.wrong.size(), 1u);
  EXPECT_NE(bits.wrong[0].find("normal_m128n160"), std::string::npos) << bits.wrong[0];
  EXPECT_NE(bits.wrong[0].find("1 elements differ"), std::string::npos) << bits.wrong[0];
  const Recording outside = recorded([](const GemmInputs&, uint8_t* d) { d[3] ^= 1; });
  ASSERT_EQ(outside.wrong.size(), 1u);
  EXPECT_NE(outside.wrong[0].find("wrote outside D"), std::string::npos) << outside.wrong[0];
}

TEST_F(MadeHere, DamageIsDetected) {
  recording_.file.records.resize(2);
  const std::vector<uint8_t> bytes = pack(recording_.file);
  for (std::size_t i = 0; i < bytes.size(); i += 1 + i / 50) {
    std::vector<uint8_t> damaged = bytes;
    damaged[i] ^= 0x10;
    EXPECT_THROW(unpack_gemms(damaged), std::runtime_error) << i;
  }
  for (std::size_t size = 0; size < bytes.size(); size += 1 + size / 50) {
    EXPECT_THROW(unpack_gemms({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}),
                 std::runtime_error);
    // Cut short with a checksum that matches: lengths must be believed no further than the end.
    std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const uint64_t sum = fnv1a(cut.data(), cut.size());
    const auto* tail = reinterpret_cast<const uint8_t*>(&sum);
    if (size < bytes.size() - 8) {
      cut.insert(cut.end(), tail, tail + 8);
      EXPECT_THROW(unpack_gemms(cut), std::runtime_error) << size;
    }
  }
  EXPECT_THROW(read_bytes("/nonexistent/gemms.bin"), std::runtime_error);
}

}  // namespace
}  // namespace oct::golden
