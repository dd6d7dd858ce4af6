// A user's C++17 program: what multiply.c does, with octet.hpp.
#include <cstdio>
#include <vector>

#include <octet/octet.hpp>

int main() {
  using namespace octet;
  const std::int64_t m = 3, n = 5, k = 128;
  std::vector<std::uint8_t> a(m * k, 0x40), b(n * k, 0x38);  // 2 and 1 in e4m3
  std::vector<float> d(m * n);
  const float scale_a = 1.5f, scale_b = 1.0f;
  const GemmProblem problem = GemmProblem::parse("dense_m3n5k128_f32").value();
  const GemmPlan plan = plan_gemm(problem, DeviceSpec::preset("cpu").value()).value();
  GemmArgs args;
  args.a = matrix(a.data(), m, k);
  args.b = matrix(b.data(), n, k);
  args.d = matrix(d.data(), m, n);
  args.sfa = {&scale_a, 0, 0, 0};
  args.sfb = {&scale_b, 0, 0, 0};
  cpu::run(plan, args).value();
  std::printf("D[2,4] = %g\n", static_cast<double>(d[2 * n + 4]));
}
