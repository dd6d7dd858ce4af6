/* Octet's C interface: the contract every other language stands on. Plain C11, no CUDA header.
 *
 * D[M,N] = A[M,K] * B[N,K]^T, both operands K-contiguous. e4m3 operands carry FP32 scales: one for
 * every 1x128 run of A along K, and one for every 128x128 block ("1D2D") or 1x128 run ("1D1D") of
 * B. The arithmetic is fixed to the bit by docs/numerics.md; the CPU backend computes the very bits
 * of Hopper's tensor cores. docs/limits.md lists every sentence a call can refuse with.
 *
 * How a call goes: describe the work (octet_gemm_problem), ask whether it can be done
 * (octet_supports), plan it (octet_plan_gemm), fill in pointers (octet_gemm_args), run it.
 *
 * Every function returns an octet_code. When it is not OCTET_OK, octet_status_message() gives one
 * sentence that names the argument, what it was and what is wanted. Sizes and strides are int64 and
 * count elements, never bytes, unless the name ends in _bytes. No function prints, aborts, keeps
 * process-wide settings, or reads the environment. All functions may be called from any thread, of
 * 32 KB of stack or more (octet_cuda_*: what the driver needs). The caller's floating-point
 * environment (rounding, flushing, traps) has no influence and is left as it was. */
#ifndef OCTET_OCTET_H_
#define OCTET_OCTET_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define OCTET_API
#define OCTET_API_VOID
#else
#define OCTET_API __attribute__((visibility("default"), warn_unused_result))
#define OCTET_API_VOID __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define OCTET_VERSION_MAJOR 0
#define OCTET_VERSION_MINOR 1
#define OCTET_VERSION_PATCH 0

/* Room that a printed problem or plan always fits in, terminating zero included. */
#define OCTET_TEXT_CAPACITY 512

/* ---------------------------------------------------------------------------------- status ---- */

enum octet_code_values {
  OCTET_OK = 0,
  OCTET_INVALID_ARGUMENT = 1, /* an argument breaks a rule of docs/limits.md                    */
  OCTET_UNSUPPORTED = 2,      /* well-formed, but this build or device has no way to do it      */
  OCTET_NO_DEVICE = 3,        /* no usable NVIDIA driver or device                              */
  OCTET_NOT_PREPARED = 4,     /* the plan's kernel is not loaded: octet_cuda_prepare() first    */
  OCTET_DEVICE_ERROR = 5,     /* the driver reported an error                                   */
  OCTET_OUT_OF_MEMORY = 6,
  OCTET_INTERNAL = 7 /* a fault of this library; the message says which check failed             */
};
typedef int32_t octet_code;

/* "invalid argument" and so on; never null. */
OCTET_API const char* octet_code_name(octet_code code);

/* The sentence of the calling thread's last failed call; valid until its next failing call. Never
 * null; empty if no call of this thread has failed. */
OCTET_API const char* octet_status_message(void);

/* "0.1.0". */
OCTET_API const char* octet_version(void);

/* --------------------------------------------------------------------------------- problem ---- */

enum octet_type_values {
  OCTET_NONE = 0,
  OCTET_E4M3 = 1, /* 8 bits: 1 sign, 4 exponent (bias 7), 3 mantissa; no infinity, 0x7f/0xff NaN  */
  OCTET_BF16 = 2,
  OCTET_F16 = 3,
  OCTET_F32 = 4,
  OCTET_I32 = 5,
  OCTET_I64 = 6,
  OCTET_UE8M0 = 7 /* a scale as one byte: exponent + 127; 0 stands for a zero scale              */
};
typedef int32_t octet_type;

/* Who owns a row of A and D (or a piece of K). G is problem.groups; B is [G,N,K]. */
enum octet_grouping_values {
  OCTET_DENSE = 0,      /* A [M,K], B [N,K], D [M,N]                                             */
  OCTET_BATCHED = 1,    /* A [G,M,K], B [G,N,K], D [G,M,N]                                       */
  OCTET_CONTIGUOUS = 2, /* A [rows,K]; args.group_index int32[rows]; every block of `alignment`
                           rows holds one index and may end in rows of -1                        */
  OCTET_OFFSETS = 3,    /* A [rows,K]; args.group_offsets [G+1]: group g owns rows
                           [offsets[g], offsets[g+1]); rows outside are left untouched           */
  OCTET_ALIGNED = 4,    /* A [rows,K]; args.group_ends int32[G]: group g owns
                           [round_up(ends[g-1], alignment), ends[g]), the first starts at 0      */
  OCTET_MASKED = 5,     /* A [G,max_m,K]; args.group_counts int32[G] rows of each group are real */
  OCTET_K_GROUPED = 6   /* A [M,sumK], B [N,sumK], D [G,M,N]; args.group_offsets[G]: where each
                           group's K starts (a multiple of 128), args.group_counts[G]: its true K.
                           With `packed`: A and B are row-major [M,K_g], [N,K_g] blocks one after
                           the other, K_g multiples of 128, only group_counts is read            */
};
typedef int32_t octet_grouping;

enum octet_scale_granularity_values {
  OCTET_SCALE_NONE = 0, /* BF16 operands                                                        */
  OCTET_1D2D = 1,       /* SFA 1x128, SFB 128x128: inference and forward passes                  */
  OCTET_1D1D = 2        /* SFA 1x128, SFB 1x128: weight gradients                                */
};
typedef int32_t octet_scale_granularity;

/* The planner's knowledge of a scale matrix; the strides in octet_scale_matrix say the rest. */
enum octet_scale_layout_values {
  OCTET_COLUMN_MAJOR = 0,    /* row_stride 1, k_stride a multiple of 4, data 16-byte aligned    */
  OCTET_ROW_MAJOR = 1,       /* k_stride 1, any row_stride                                      */
  OCTET_COLUMN_MAJOR_ODD = 2 /* row_stride 1, any k_stride, any alignment                       */
};
typedef int32_t octet_scale_layout;

/* Everything that planning and support depend on; no pointers. Start with
 * octet_gemm_problem_init(), or parse a problem string. */
typedef struct octet_gemm_problem {
  uint32_t struct_size;    /* set by octet_gemm_problem_init()                                   */
  octet_grouping grouping; /* OCTET_DENSE                                                        */
  int64_t m;               /* rows of A; grouped over M: rows expected per group (a hint: any real
                              number of rows gives the same bits)                                */
  int64_t n;               /* rows of B                                                          */
  int64_t k;               /* columns; K-grouped: average K per group (a hint)                   */
  int64_t groups;          /* G, or the batch; 1 when dense                                      */
  int64_t max_m;           /* masked: rows of each group's buffer                                */
  int64_t alignment;       /* contiguous: 64, 128, ...; aligned: 1 or more; else 128             */
  octet_type in_type;      /* type of A and B: OCTET_E4M3 or OCTET_BF16                          */
  octet_type d_type;       /* type of D (and of C): OCTET_BF16, OCTET_F16 or OCTET_F32           */
  octet_type bias_type;    /* OCTET_NONE, or the type of bias[N]: F32, BF16 or F16               */
  int32_t accumulate;      /* 1: C is added                                                      */
  octet_scale_granularity granularity;
  octet_scale_layout sfa_layout; /* OCTET_COLUMN_MAJOR                                           */
  octet_scale_layout sfb_layout; /* 1D2D: OCTET_ROW_MAJOR; 1D1D: OCTET_COLUMN_MAJOR              */
  octet_type index_type;    /* of group_offsets (and K-grouped group_counts): I32 or I64          */
  int32_t packed;           /* K-grouped: the packed form                                         */
  int32_t zero_padding;     /* contiguous: 1 stores zeros in rows of -1, 0 leaves them untouched  */
  int32_t split;            /* ranges that K is cut into; 0: the planner chooses                  */
  int32_t batch_invariant;  /* 1: the split depends on N and K alone                              */
  int32_t sm_budget;        /* SMs the call may use; 0: all                                       */
  int32_t dependent_launch; /* 1: launched as a programmatic dependent of the kernel before it    */
  int32_t weights_ready;    /* 1: B and SFB are written by no unfinished kernel                   */
  int32_t even;             /* tests and benchmarks: 1 draws groups of equal size                 */
  uint32_t seed;            /* tests and benchmarks: seed of the group sizes and the data         */
} octet_gemm_problem;

/* Dense, e4m3, 1D2D, BF16 result, all sizes 0, one group. */
OCTET_API_VOID void octet_gemm_problem_init(octet_gemm_problem* problem);

/* "dense_m4096n7168k2048", "masked_g32m192n4096k7168", "offsets_g128m4096n3072k4096_seed7": the
 * grammar is in docs/problem-string.md. Refuses, naming the place, whatever does not follow it. */
OCTET_API octet_code octet_gemm_problem_parse(const char* text, octet_gemm_problem* problem);

/* The one string of a problem: defaults left out, options in fixed order. capacity in bytes. */
OCTET_API octet_code octet_gemm_problem_print(const octet_gemm_problem* problem, char* text,
                                              size_t capacity);

/* 1 if all fields are equal, else 0. */
OCTET_API int32_t octet_gemm_problem_equal(const octet_gemm_problem* x,
                                           const octet_gemm_problem* y);
OCTET_API uint64_t octet_gemm_problem_hash(const octet_gemm_problem* problem);

/* ---------------------------------------------------------------------------------- device ---- */

/* What the planner knows of a device. Presets: "h100_sxm", "h100_pcie", "h200", "h800", "h20",
 * "gh200" and "cpu"; planning for a device needs no such device. */
typedef struct octet_device_spec {
  uint32_t struct_size;
  int32_t compute_major, compute_minor; /* 9.0 for Hopper; 0.0 for "cpu"                         */
  int32_t sms;
  char name[32];
  int64_t shared_memory_bytes; /* most dynamic shared memory of one CTA                          */
  int64_t l2_bytes;
  double dram_bytes_per_second;
  double fp8_flops_per_second; /* dense, sustained on random data                                */
  double bf16_flops_per_second;
  double launch_seconds;      /* what a call costs besides its floor                         */
  int32_t active_clusters[5]; /* most clusters of 1, 2, 4, 8, 16 CTAs resident at once, one
                                 CTA an SM                                                    */
  int32_t reserved;
} octet_device_spec;

OCTET_API octet_code octet_device_preset(const char* name, octet_device_spec* device);
OCTET_API int32_t octet_device_preset_count(void);
/* Name of preset 0 <= index < count; null outside. */
OCTET_API const char* octet_device_preset_name(int32_t index);

/* ------------------------------------------------------------------------------------ plan ---- */

/* How a problem is computed. A value: prints, parses back, compares. The bits of the result depend
 * on the inputs and on `split` alone. */
typedef struct octet_gemm_plan {
  uint32_t struct_size;
  int32_t split; /* ranges that K is cut into; each has its own accumulator, added in order      */
  octet_gemm_problem problem;
  char device[32];
  char kernel[64]; /* name of the kernel, "cpu" for the CPU backend                              */
  int32_t sms;     /* most CTAs launched at once, which is not always SMs: two may share one;
                      0 on the CPU                                                               */
  int32_t reserved;
  int64_t workspace_bytes;
  double predicted_us;
} octet_gemm_plan;

/* OCTET_OK if the problem can be computed on the device, or the reason in words. Runs nothing. */
OCTET_API octet_code octet_supports(const octet_gemm_problem* problem,
                                    const octet_device_spec* device);

/* Chooses a plan: the cheapest by the cost model, or what was measured (see "tuned tables"). Pure:
 * depends on its arguments alone. */
OCTET_API octet_code octet_plan_gemm(const octet_gemm_problem* problem,
                                     const octet_device_spec* device, octet_gemm_plan* plan);

/* The plans that octet_plan_gemm() chooses from, cheapest prediction first: number 0 is its choice
 * where nothing was measured. For measuring them beside each other. *count (may be null) receives
 * how many there are, also when `index` is beyond them, which is refused; 0 when the problem itself
 * is refused. */
OCTET_API octet_code octet_plan_candidate(const octet_gemm_problem* problem,
                                          const octet_device_spec* device, int32_t index,
                                          octet_gemm_plan* plan, int32_t* count);

/* "dense_m64n7168k2048 @ h200: kernel=... split=2 sms=132 workspace=0 us=6.25" and back. sms,
 * workspace and us are left out where all are 0: "dense_m4n4k4 @ cpu: kernel=cpu split=1". A plan
 * whose fields break a rule or contradict each other is refused by both. */
OCTET_API octet_code octet_gemm_plan_print(const octet_gemm_plan* plan, char* text,
                                           size_t capacity);
OCTET_API octet_code octet_gemm_plan_parse(const char* text, octet_gemm_plan* plan);
OCTET_API int32_t octet_gemm_plan_equal(const octet_gemm_plan* x, const octet_gemm_plan* y);

/* Why this plan: the candidates with their predicted times, and those refused with the reason.
 * *needed (may be null) receives the bytes the whole text takes, terminating zero included; a text
 * longer than capacity is cut and still terminated. */
OCTET_API octet_code octet_plan_explain(const octet_gemm_problem* problem,
                                        const octet_device_spec* device, char* text,
                                        size_t capacity, size_t* needed);

/* --------------------------------------------------------------------------- tuned tables ---- */

/* Choices that were measured on a device (by `octet tune`), as a text of a line for each problem:
 * docs/tuned-tables.md has the format. A table decides for the very problems it names, whatever
 * their bias and scale layouts are, and for their dependent launches where it has no line for
 * those; for all others, for another device, and where
 * the problem fixes its split (`split`, `batch_invariant`) the planner chooses by itself. A table
 * for the H200 is part of this library; planning asks it after the one it is given. */
typedef struct octet_tuned_table octet_tuned_table;

/* Reads a table; refuses, naming the line, whatever does not follow the format. *table is to be
 * destroyed by the caller. */
OCTET_API octet_code octet_tuned_table_create(const char* text, octet_tuned_table** table);
/* Null is fine. */
OCTET_API_VOID void octet_tuned_table_destroy(octet_tuned_table* table);

/* Adds a choice, or replaces the one of the same problem: the plan's kernel, split and sms,
 * measured to take plan->predicted_us. The plan is of the table's device. Not while another thread
 * uses the table. */
OCTET_API octet_code octet_tuned_table_set(octet_tuned_table* table, const octet_gemm_plan* plan);

/* The table as text. *needed (may be null) receives the bytes it takes, terminating zero included;
 * with capacity 0 nothing else happens. A text longer than capacity is refused. */
OCTET_API octet_code octet_tuned_table_print(const octet_tuned_table* table, char* text,
                                             size_t capacity, size_t* needed);

/* OCTET_OK if every choice of the table is used for plans on the device; else a sentence that names
 * the first one that is passed over (its kernel is gone, or does not serve the problem), or the
 * table itself, when it is of another device. */
OCTET_API octet_code octet_tuned_table_check(const octet_tuned_table* table,
                                             const octet_device_spec* device);

/* octet_plan_gemm() that asks a table of the caller's first; null: none. predicted_us of a measured
 * choice is what was measured. */
OCTET_API octet_code octet_plan_gemm_tuned(const octet_gemm_problem* problem,
                                           const octet_device_spec* device,
                                           const octet_tuned_table* table, octet_gemm_plan* plan);

/* octet_plan_explain() of that plan. */
OCTET_API octet_code octet_plan_explain_tuned(const octet_gemm_problem* problem,
                                              const octet_device_spec* device,
                                              const octet_tuned_table* table, char* text,
                                              size_t capacity, size_t* needed);

/* ------------------------------------------------------------------------------- arguments ---- */

/* A row-major matrix, rows `ld` elements apart, or `groups` of them `group_stride` elements apart:
 * then rows counts those of one group (masked: max_m). In a batched problem A, B, C, SFA and
 * SFB may have a group_stride of 0: one for the whole batch. Inputs are never written. */
typedef struct octet_matrix {
  void* data;
  int64_t rows, cols;
  int64_t ld;
  int64_t group_stride; /* at least one group's extent, or 0 (batched: shared); not read when there
                           is one group                                                          */
} octet_matrix;

/* Scales: element (r, kb) of group g is data[r * row_stride + kb * k_stride + g * group_stride].
 * kb counts blocks of 128 along K, ceil(K/128) of them; r counts rows of A or B (1x128), or blocks
 * of 128 rows of B (128x128), within the group. All strides 0: one scale for everything. FP32. */
typedef struct octet_scale_matrix {
  const float* data;
  int64_t row_stride, k_stride, group_stride;
} octet_scale_matrix;

/* Pointers of one call: host memory for the CPU backend, device memory for the GPU. Which of the
 * group_* arrays is read, and its length, is said at octet_grouping. Grouping metadata is never
 * trusted: values out of range are clamped, offsets and ends that decrease are raised to where the
 * group starts, no row has two owners, nothing outside the declared extents is touched, and
 * octet_validate() names what is wrong. */
typedef struct octet_gemm_args {
  uint32_t struct_size;
  int32_t reserved;
  octet_matrix a, b, d;
  octet_matrix c; /* accumulate: same shape and type as D; may be D itself                       */
  octet_scale_matrix sfa, sfb;
  const void* bias; /* [N], or [G,N] bias_group_stride apart                            */
  int64_t bias_group_stride;
  const void* group_index;
  const void* group_offsets;
  const void* group_ends;
  const void* group_counts;
  void* workspace; /* plan.workspace_bytes, 256-byte aligned; one stream at a time; no zeroing   */
  int64_t workspace_bytes;
} octet_gemm_args;

OCTET_API_VOID void octet_gemm_args_init(octet_gemm_args* args);

/* Every rule about pointers, alignment, strides and overlap. Pure: reads no operand. */
OCTET_API octet_code octet_check(const octet_gemm_plan* plan, const octet_gemm_args* args);

/* For debugging, host memory: reads grouping metadata and scales and names the first value that a
 * run would have to clamp, or that is not finite. */
OCTET_API octet_code octet_validate(const octet_gemm_plan* plan, const octet_gemm_args* args);

/* ------------------------------------------------------------------------------ CPU backend ----
 */

enum octet_isa_values {
  OCTET_ISA_AUTO = 0,
  OCTET_ISA_PORTABLE = 1,
  OCTET_ISA_AVX2 = 2,
  OCTET_ISA_AVX512 = 3
};
typedef int32_t octet_isa;

/* "portable", "avx2", "avx512", "auto". */
OCTET_API const char* octet_isa_name(octet_isa isa);
/* 1 if this build and this processor have it, else 0. */
OCTET_API int32_t octet_isa_available(octet_isa isa);

typedef struct octet_cpu_options {
  uint32_t struct_size;
  int32_t threads; /* 0: all the processor's                                                     */
  octet_isa isa;   /* OCTET_ISA_AUTO: the fastest there is                                       */
  int32_t reserved;
} octet_cpu_options;

OCTET_API_VOID void octet_cpu_options_init(octet_cpu_options* options);

/* What a CPU run used; filled when the pointer is not null. */
typedef struct octet_cpu_report {
  uint32_t struct_size;
  octet_isa isa;
  int32_t threads; /* that ran, the caller's included: fewer than asked for where the work is small
                      or the system gives no more                                                */
  int32_t reserved;
  int64_t scratch_bytes; /* memory taken besides the operands                                    */
} octet_cpu_report;

/* D = A * B^T on the processor, the bits of the tensor cores. Pointers are host memory. options and
 * report may be null. */
OCTET_API octet_code octet_cpu_run(const octet_gemm_plan* plan, const octet_gemm_args* args,
                                   const octet_cpu_options* options, octet_cpu_report* report);

/* The same by the normative loops of src/ref: short and slow. */
OCTET_API octet_code octet_ref_run(const octet_gemm_plan* plan, const octet_gemm_args* args);

/* ----------------------------------------------------------------------------- quantisation ----
 */

enum octet_block_values {
  OCTET_BLOCK_1X128 = 1,  /* one scale for 128 consecutive elements along `axis`                 */
  OCTET_BLOCK_128X128 = 2 /* one scale for a square of 128 x 128                                 */
};

enum octet_scale_format_values {
  OCTET_SCALES_F32 = 0,  /* amax / 448                                                          */
  OCTET_SCALES_POW2 = 1, /* the same rounded up to a power of two, stored as FP32               */
  OCTET_SCALES_UE8M0 = 2 /* powers of two stored as one byte                                    */
};

/* x[rows, cols] -> codes and scales, as docs/numerics.md section 3 defines to the bit.
 *
 * K is the axis that blocks run along: cols when axis is 1, rows when axis is 0. codes has the
 * shape of x, or is its transpose [cols, rows] when `transpose` is 1 (axis 0 with transpose gives
 * K-contiguous operands of weight gradients). codes may be longer than x along K, up to the next
 * multiple of 128: the rest is written as zeros, so that K-grouped tails are clean.
 * scales: element (r, kb): kb counts blocks of 128 along K; r counts the other axis, in elements
 * (1x128) or in blocks of 128 (128x128). */
typedef struct octet_quantize_args {
  uint32_t struct_size;
  int32_t block;        /* OCTET_BLOCK_1X128 (default) or OCTET_BLOCK_128X128                    */
  int32_t axis;         /* 1: K runs along columns (default); 0: along rows                      */
  int32_t transpose;    /* 0 or 1                                                                */
  octet_type x_type;    /* OCTET_F32, OCTET_BF16 or OCTET_F16                                    */
  int32_t scale_format; /* OCTET_SCALES_*                                                        */
  float amax_min;       /* amax is taken as at least this; 0                                     */
  int32_t threads;      /* 0: all                                                                */
  octet_matrix x;       /* read by quantise, written by dequantise                               */
  octet_matrix codes;   /* uint8                                                                 */
  void* scales;         /* float, or uint8 for OCTET_SCALES_UE8M0                                */
  int64_t row_stride, k_stride;
} octet_quantize_args;

OCTET_API_VOID void octet_quantize_args_init(octet_quantize_args* args);

OCTET_API octet_code octet_cpu_quantize(const octet_quantize_args* args);
OCTET_API octet_code octet_ref_quantize(const octet_quantize_args* args);

/* x = code * scale in FP32, rounded once to x's type. Scales are read: their strides may be 0. */
OCTET_API octet_code octet_cpu_dequantize(const octet_quantize_args* args);
OCTET_API octet_code octet_ref_dequantize(const octet_quantize_args* args);

/* ------------------------------------------------------------------------------------ CUDA ---- */

/* NVIDIA Hopper (compute capability 9.0). Needs the driver alone: its library is opened at run
 * time, kernels are part of this library. A context takes the device's primary context, works
 * whatever context is current in the calling thread, and leaves it as it was. It may be used by any
 * number of threads and streams at once, and must outlive what was bound with it. Create it after a
 * fork.
 *
 * A stream is a cudaStream_t (or CUstream) passed as a pointer; null is the legacy default stream.
 * octet_cuda_run() and octet_cuda_run_bound() never allocate, compile, load, synchronise or read
 * the environment, and may be captured into a CUDA graph. */
typedef struct octet_cuda_context octet_cuda_context;
typedef struct octet_cuda_bound octet_cuda_bound;

/* Devices the driver shows, of whatever kind; 0 without a driver. */
OCTET_API int32_t octet_cuda_device_count(void);
/* CUDA's version that the driver is for, 13000 for 13.0. Refuses, in words, a machine without a
 * driver that this build can use. */
OCTET_API octet_code octet_cuda_driver_version(int32_t* version);
/* What the driver calls a device, usable or not: "NVIDIA H200". OCTET_TEXT_CAPACITY is room for any
 * name. capacity in bytes. */
OCTET_API octet_code octet_cuda_device_name(int32_t ordinal, char* text, size_t capacity);
/* Numbers of a device for planning; refuses, in words, a device that cannot be used. */
OCTET_API octet_code octet_cuda_device_spec(int32_t ordinal, octet_device_spec* device);
/* Kernels inside this library; 0 if it was built without them (OCTET_CUDA=off, or no nvcc). */
OCTET_API int32_t octet_cuda_kernel_count(void);
/* Name of kernel 0 <= index < count; null outside. */
OCTET_API const char* octet_cuda_kernel_name(int32_t index);

OCTET_API octet_code octet_cuda_context_create(int32_t ordinal, octet_cuda_context** context);
/* Null is fine. Work that still runs is waited for by the driver. */
OCTET_API_VOID void octet_cuda_context_destroy(octet_cuda_context* context);

/* The device as the planner sees it. */
OCTET_API octet_code octet_cuda_context_device(const octet_cuda_context* context,
                                               octet_device_spec* device);

/* Gives octet_cuda_gemm() the choices of a table, of which the context keeps a copy; null takes
 * them away. Plans made before are forgotten. Any thread. */
OCTET_API octet_code octet_cuda_context_set_table(octet_cuda_context* context,
                                                  const octet_tuned_table* table);

/* Loads the kernels of `count` plans, a few milliseconds each the first time. */
OCTET_API octet_code octet_cuda_prepare(octet_cuda_context* context, const octet_gemm_plan* plans,
                                        int32_t count);

/* Checks the arguments and encodes a launch once. *bound is to be destroyed by the caller. */
OCTET_API octet_code octet_cuda_bind(octet_cuda_context* context, const octet_gemm_plan* plan,
                                     const octet_gemm_args* args, octet_cuda_bound** bound);
/* Other pointers (or strides) for the same plan. Not while another thread runs the same object. */
OCTET_API octet_code octet_cuda_rebind(octet_cuda_context* context, octet_cuda_bound* bound,
                                       const octet_gemm_args* args);
OCTET_API_VOID void octet_cuda_bound_destroy(octet_cuda_bound* bound);

/* One launch. */
OCTET_API octet_code octet_cuda_run_bound(const octet_cuda_context* context,
                                          const octet_cuda_bound* bound, void* stream);
/* Bind and run in one call; the plan must be prepared. */
OCTET_API octet_code octet_cuda_run(const octet_cuda_context* context, const octet_gemm_plan* plan,
                                    const octet_gemm_args* args, void* stream);
/* Plan (from a bounded cache), prepare if need be, run. While the stream is captured a kernel that
 * is not loaded is refused with OCTET_NOT_PREPARED, and the capture stays intact. */
OCTET_API octet_code octet_cuda_gemm(octet_cuda_context* context, const octet_gemm_problem* problem,
                                     const octet_gemm_args* args, void* stream);
/* For debugging: waits for `stream`, reads the grouping metadata that `args` names in device memory
 * and names the first value that a run would have to clamp. Refused while the stream is captured.
 */
OCTET_API octet_code octet_cuda_validate(const octet_cuda_context* context,
                                         const octet_gemm_plan* plan, const octet_gemm_args* args,
                                         void* stream);

#ifdef __cplusplus
}
#endif
#endif /* OCTET_OCTET_H_ */
