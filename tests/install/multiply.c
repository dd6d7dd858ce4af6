/* A user's C11 program: plans and multiplies on the processor, and says one element. Ones times
 * powers of two: row m of A holds 2^(m-1), so D[2,4] = 2 * 128 * 1.5. */
#include <stdio.h>
#include <string.h>

#include <octet/octet.h>

enum { kM = 3, kN = 5, kK = 128 };

int main(void) {
  static _Alignas(16) uint8_t a[kM * kK], b[kN * kK];
  static float d[kM * kN];
  const float scale_a = 1.5f, scale_b = 1.0f;
  octet_gemm_problem problem;
  octet_device_spec device;
  octet_gemm_plan plan;
  octet_gemm_args args;
  int m;

  for (m = 0; m < kM; ++m) memset(a + m * kK, 0x30 + 8 * m, kK); /* 0.5, 1, 2 in e4m3 */
  memset(b, 0x38, sizeof b);
  octet_gemm_args_init(&args);
  args.a.data = a;
  args.a.rows = kM;
  args.a.cols = args.a.ld = kK;
  args.b.data = b;
  args.b.rows = kN;
  args.b.cols = args.b.ld = kK;
  args.d.data = d;
  args.d.rows = kM;
  args.d.cols = args.d.ld = kN;
  args.sfa.data = &scale_a; /* strides of 0: one scale for everything */
  args.sfb.data = &scale_b;
  if (octet_gemm_problem_parse("dense_m3n5k128_f32", &problem) != OCTET_OK ||
      octet_device_preset("cpu", &device) != OCTET_OK ||
      octet_plan_gemm(&problem, &device, &plan) != OCTET_OK ||
      octet_cpu_run(&plan, &args, NULL, NULL) != OCTET_OK) {
    printf("%s\n", octet_status_message());
    return 1;
  }
  printf("D[2,4] = %g\n", d[2 * kN + 4]);
  return 0;
}
