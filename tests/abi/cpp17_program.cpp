// A C++17 program, as a user writes one: octet.hpp alone. It is here so that the header stays C++17
// and so that every function of it is compiled and called once, with a known result.
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "octet/octet.hpp"

// What a temporary gives is no reference into it.
static_assert(std::is_same_v<decltype(std::declval<octet::Result<octet::GemmPlan>>().value()),
                             octet::GemmPlan>);

namespace {

using namespace octet;

int failures = 0;

void expect(bool right, const char* what) {
  if (right) return;
  std::printf("FAILED: %s; the last message is \"%s\"\n", what, octet_status_message());
  ++failures;
}

constexpr std::int64_t kM = 5, kN = 3, kK = 256, kPitch = 8;

struct Operands {
  std::vector<std::uint8_t> a, b;
  std::vector<float> sfa, sfb;
};

// Each block of 128 holds one 448, where the other operand holds 0: every scale is 1.
std::vector<float> values(std::int64_t rows, int place_of_448) {
  std::vector<float> x(static_cast<std::size_t>(rows * kK));
  for (std::int64_t i = 0; i < rows * kK; ++i) {
    const auto place = i % 128;
    x[static_cast<std::size_t>(i)] = place == place_of_448 ? 448.0f
                                     : place < 2           ? 0.0f
                                                           : static_cast<float>(i / kK + 1);
  }
  return x;
}

std::vector<std::uint8_t> quantize(const std::vector<float>& x, std::int64_t rows, int block,
                                   std::vector<float>& scales) {
  std::vector<std::uint8_t> codes(x.size());
  QuantizeArgs args;
  args.block = block;
  args.x = matrix(x.data(), rows, kK);
  args.codes = matrix(codes.data(), rows, kK);
  args.scales = scales.data();
  args.row_stride = block == OCTET_BLOCK_1X128 ? 1 : k_blocks(kK);
  args.k_stride = block == OCTET_BLOCK_1X128 ? kPitch : 1;
  cpu::quantize(args).value();

  std::vector<std::uint8_t> same(x.size());
  args.codes = matrix(same.data(), rows, kK);
  ref::quantize(args).value();
  expect(codes == same, "both quantisers agree");

  std::vector<float> back(x.size()), back_too(x.size());
  args.x = matrix(back.data(), rows, kK);
  cpu::dequantize(args).value();
  args.x = matrix(back_too.data(), rows, kK);
  ref::dequantize(args).value();
  expect(back == x && back_too == x, "exact values come back");
  return codes;
}

Operands make_operands() {
  Operands x;
  x.sfa.resize(kPitch * k_blocks(kK));
  x.sfb.resize(k_blocks(kK));
  x.a = quantize(values(kM, 0), kM, OCTET_BLOCK_1X128, x.sfa);
  x.b = quantize(values(kN, 1), kN, OCTET_BLOCK_128X128, x.sfb);
  return x;
}

bool right(const std::vector<float>& d) {
  for (std::int64_t i = 0; i < kM * kN; ++i) {
    const auto want = static_cast<float>(252 * (i / kN + 1) * (i % kN + 1));
    if (d[static_cast<std::size_t>(i)] != want) return false;
  }
  return true;
}

void multiply() {
  const GemmProblem problem = GemmProblem::parse("dense_m5n3k256_f32").value();
  const DeviceSpec device = DeviceSpec::preset("cpu").value();
  expect(supports(problem, device).ok(), "the processor computes it");
  const GemmPlan plan = plan_gemm(problem, device).value();
  expect(GemmPlan::parse(plan.to_string()).value() == plan, "a plan survives its text");
  expect(plan_candidates(problem, device, 5).value().front() == plan, "the first candidate");
  const std::string why = explain(problem, device).value();
  expect(why.find(plan.to_string()) != std::string::npos, "the explanation holds the plan");
  expect(why.size() == std::strlen(why.c_str()), "the explanation ends where it ends");

  TunedTable table = TunedTable::parse("octet tuned table 1\ndevice: h200\nsms: 132\n").value();
  const DeviceSpec h200 = DeviceSpec::preset("h200").value();
  const GemmPlan third = plan_candidates(problem, h200, 3).value().back();
  table.set(third).value();
  table.check(h200).value();
  expect(plan_gemm(problem, h200, table).value() == third, "a measured choice is the choice");
  expect(explain(problem, h200, &table).value().find("measured: ") != std::string::npos,
         "the explanation says that it was measured");
  expect(TunedTable::parse(table.to_string()).value().to_string() == table.to_string(),
         "a table survives its text");

  const Operands x = make_operands();
  std::vector<float> d(kM * kN);
  GemmArgs args;
  args.a = matrix(x.a.data(), kM, kK);
  args.b = matrix(x.b.data(), kN, kK);
  args.d = matrix(d.data(), kM, kN);
  args.sfa = column_major_scales(x.sfa.data(), kPitch);
  args.sfb = row_major_scales(x.sfb.data(), k_blocks(kK));
  check(plan, args).value();
  validate(plan, args).value();

  cpu::run(plan, args).value();
  expect(right(d), "the product");
  d.assign(d.size(), 0.0f);
  cpu::Options options;
  options.threads = 1;
  const octet_cpu_report report = cpu::run(plan, args, options).value();
  expect(right(d) && report.threads == 1, "the product, by one thread");
  d.assign(d.size(), 0.0f);
  ref::run(plan, args).value();
  expect(right(d), "the product, by the normative loops");

  args.b.ld = kK - 1;
  const Status status = cpu::run(plan, args);
  expect(!status && status.code() == OCTET_INVALID_ARGUMENT, "a short ld is refused");
  expect(status.message() == octet_status_message(), "a status carries the library's sentence");
}

void values_and_errors() {
  GemmProblem problem;
  problem.grouping = OCTET_MASKED;
  problem.groups = 32;
  problem.m = 192;
  problem.max_m = 1024;
  const GemmProblem read = GemmProblem::parse(problem.to_string()).value();
  expect(read == problem, "a problem survives its text");
  std::unordered_set<GemmProblem> set{problem};
  expect(set.count(read) == 1, "equal problems have equal hashes");
  problem.n = 1;
  expect(read != problem && set.count(problem) == 0, "another problem is another problem");

  const Result<GemmProblem> bad = GemmProblem::parse("dense_m4n4");
  expect(!bad && bad.status().code() == OCTET_INVALID_ARGUMENT, "half a problem is refused");
  try {
    (void)bad.value();
    expect(false, "value() of a failure throws");
  } catch (const Error& e) {
    expect(e.code() == OCTET_INVALID_ARGUMENT && e.what() == bad.message(), "Error says why");
  }
  expect(!DeviceSpec::preset("abacus"), "an unknown device is refused");
  // A string is refused as a whole, not read up to a zero inside it.
  const auto with_tail = [](std::string text) { return text + '\0' + "nonsense"; };
  expect(!GemmProblem::parse(with_tail("dense_m4n4k4")), "a problem ends where its string ends");
  expect(!DeviceSpec::preset(with_tail("cpu")), "a device's name ends where its string ends");
  expect(!GemmPlan::parse(
             with_tail(plan_gemm(read, DeviceSpec::preset("cpu").value()).value().to_string())),
         "a plan ends where its string ends");
  // A given pitch is taken as it is; only one left out is the row.
  for (const std::int64_t ld : {-32, -1, 0, 16, 40}) {
    const octet_matrix x = matrix(nullptr, 4, 16, ld, -7);
    expect(x.ld == ld && x.group_stride == -7, "a pitch is passed on as it is");
  }
  expect(matrix(nullptr, 4, 16).ld == 16, "rows follow each other");
  expect(std::string(octet::version()) == octet_version(), "version");
}

void devices() {
  const Result<cuda::Context> none = cuda::Context::create(-1);
  expect(!none && !none.message().empty(), "no device has a negative number");
  const Result<std::int32_t> driver = cuda::driver_version();
  expect(driver.ok() ==
             (none.status().code() == OCTET_NO_DEVICE && none.message().find("device -1") == 0),
         "with a driver it is the device that is refused, without one the driver");
  if (!driver) expect(cuda::device_count() == 0, "no driver shows no device");
  if (driver) expect(driver.value() >= 12000, "a version such as 13000");
  expect(!cuda::device_name(-1).ok(), "a device that is not there has no name");
  expect(octet_cuda_driver_version(nullptr) == OCTET_INVALID_ARGUMENT, "null is refused");
  const GemmProblem problem = GemmProblem::parse("dense_m64n256k512").value();
  const GemmPlan for_cpu = plan_gemm(problem, DeviceSpec::preset("cpu").value()).value();
  for (std::int32_t i = 0; i < cuda::device_count(); ++i) {
    const Result<DeviceSpec> device = cuda::device_spec(i);
    Result<cuda::Context> made = cuda::Context::create(i);
    expect(!cuda::device_name(i).value().empty(), "a device has a name, usable or not");
    expect(made.ok() == device.ok(), "a usable device has a context");
    if (!made) {
      expect(made.message() == device.message(), "an unusable device says why");
      continue;
    }
    cuda::Context context = std::move(made).value();
    expect(context.device().value().sms == device.value().sms, "the device of a context");
    const GemmPlan plan = plan_gemm(problem, context.device().value()).value();
    const Result<cuda::BoundGemm> bound = context.bind(plan, GemmArgs());
    expect(!bound, "arguments without pointers are refused");
    context.prepare(plan).value();
    expect(!context.prepare(for_cpu), "a plan of the CPU has no kernel");
    cuda::Context moved = std::move(context);
    expect(!context.prepare(plan), "a context that was moved away is refused, not used");
    moved.prepare(plan).value();
  }
}

}  // namespace

int main() {
  try {
    multiply();
    values_and_errors();
    devices();
  } catch (const std::exception& e) {
    std::printf("FAILED: %s\n", e.what());
    return 1;
  }
  return failures == 0 ? 0 : 1;
}
