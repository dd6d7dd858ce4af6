/* A C11 program, as a user writes one: octet.h alone, quantise, plan, multiply on the processor. It
 * is here so that the header stays C and so that a result known from arithmetic comes out. */
#include <stdio.h>
#include <string.h>

#include "octet/octet.h"

enum { kM = 5, kN = 3, kK = 256, kBlocks = kK / 128, kPitch = 8 };

static float x[kM * kK];
static float w[kN * kK];
static _Alignas(16) uint8_t a[kM * kK];
static _Alignas(16) uint8_t b[kN * kK];
static _Alignas(16) float sfa[kPitch * kBlocks];
static _Alignas(16) float sfb[kBlocks];
static float d[kM * kN];

static int failures = 0;

static void expect(int right, const char* what) {
  if (right) return;
  printf("FAILED: %s; the last message is \"%s\"\n", what, octet_status_message());
  ++failures;
}

static octet_matrix matrix(void* data, int64_t rows, int64_t cols) {
  octet_matrix result;
  memset(&result, 0, sizeof result);
  result.data = data;
  result.rows = rows;
  result.cols = cols;
  result.ld = cols;
  return result;
}

/* Each block of 128 holds one 448, where the other operand holds 0, so that every scale is a power
 * of two and no code is rounded. */
static void fill(void) {
  for (int k = 0; k < kK; ++k) {
    for (int m = 0; m < kM; ++m) {
      const float value = k % 128 == 0 ? 448.0f : k % 128 == 1 ? 0.0f : (float)(m + 1);
      x[m * kK + k] = m % 2 == 1 ? 2.0f * value : value;
    }
    for (int n = 0; n < kN; ++n) {
      w[n * kK + k] = k % 128 == 0 ? 0.0f : k % 128 == 1 ? 448.0f : (float)(n + 1);
    }
  }
}

static void quantize(void) {
  octet_quantize_args args;
  octet_quantize_args_init(&args);
  args.x = matrix(x, kM, kK);
  args.codes = matrix(a, kM, kK);
  args.scales = sfa;
  args.row_stride = 1;
  args.k_stride = kPitch;
  expect(octet_cpu_quantize(&args) == OCTET_OK, "A is quantised");

  octet_quantize_args_init(&args);
  args.block = OCTET_BLOCK_128X128;
  args.x = matrix(w, kN, kK);
  args.codes = matrix(b, kN, kK);
  args.scales = sfb;
  args.row_stride = kBlocks;
  args.k_stride = 1;
  expect(octet_cpu_quantize(&args) == OCTET_OK, "B is quantised");

  for (int block = 0; block < kBlocks; ++block) {
    expect(sfb[block] == 1.0f, "amax 448 has scale 1");
    for (int m = 0; m < kM; ++m) {
      expect(sfa[m + block * kPitch] == (m % 2 == 1 ? 2.0f : 1.0f), "amax 896 has scale 2");
    }
  }
}

static void multiply(void) {
  octet_gemm_problem problem;
  octet_device_spec device;
  octet_gemm_plan plan;
  octet_gemm_plan read;
  octet_gemm_args args;
  octet_cpu_options options;
  octet_cpu_report report;
  char text[OCTET_TEXT_CAPACITY];

  expect(octet_gemm_problem_parse("dense_m5n3k256_f32", &problem) == OCTET_OK, "parse");
  expect(octet_gemm_problem_print(&problem, text, sizeof text) == OCTET_OK, "print");
  expect(strcmp(text, "dense_m5n3k256_f32") == 0, "a problem prints as it was read");
  expect(octet_device_preset("cpu", &device) == OCTET_OK, "preset cpu");
  expect(octet_supports(&problem, &device) == OCTET_OK, "the processor computes it");
  expect(octet_plan_gemm(&problem, &device, &plan) == OCTET_OK, "plan");
  expect(octet_gemm_plan_print(&plan, text, sizeof text) == OCTET_OK, "print the plan");
  expect(octet_gemm_plan_parse(text, &read) == OCTET_OK, "parse the plan");
  expect(octet_gemm_plan_equal(&plan, &read) == 1, "a plan survives its text");

  octet_gemm_args_init(&args);
  args.a = matrix(a, kM, kK);
  args.b = matrix(b, kN, kK);
  args.d = matrix(d, kM, kN);
  args.sfa.data = sfa;
  args.sfa.row_stride = 1;
  args.sfa.k_stride = kPitch;
  args.sfb.data = sfb;
  args.sfb.row_stride = kBlocks;
  args.sfb.k_stride = 1;
  expect(octet_check(&plan, &args) == OCTET_OK, "check");
  expect(octet_validate(&plan, &args) == OCTET_OK, "validate");

  octet_cpu_options_init(&options);
  options.threads = 2;
  memset(&report, 0, sizeof report);
  expect(octet_cpu_run(&plan, &args, &options, &report) == OCTET_OK, "run");
  expect(report.struct_size == sizeof report, "the report is filled in");
  expect(octet_isa_available(report.isa) == 1, "the report names instructions that are there");
  for (int m = 0; m < kM; ++m) {
    for (int n = 0; n < kN; ++n) {
      const int scale = m % 2 == 1 ? 2 : 1;
      /* A block has 126 products of codes; a row of doubled x has half the code and scale 2. */
      expect(d[m * kN + n] == (float)(252 * scale * (m + 1) * (n + 1)), "the product");
    }
  }

  args.a.data = NULL;
  expect(octet_cpu_run(&plan, &args, NULL, NULL) == OCTET_INVALID_ARGUMENT, "a null A is refused");
  expect(strstr(octet_status_message(), "a.data") != NULL, "the message names a.data");
}

int main(void) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", OCTET_VERSION_MAJOR, OCTET_VERSION_MINOR,
           OCTET_VERSION_PATCH);
  expect(strcmp(octet_version(), version) == 0, "header and library are of one version");
  expect(octet_status_message()[0] == 0, "no message before the first failure");
  fill();
  quantize();
  multiply();
  return failures == 0 ? 0 : 1;
}
