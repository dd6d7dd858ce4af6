// Weight gradients (scales on both sides; dense, batched, K-grouped, packed) on the device against
// the processor, to the bit.
//
//   wgrad_test [--problems N] [--seconds S] [--seed X] [--kernel SUBSTRING] [--small]
//              [--skip-large] [--problem STRING]
//
// Random problems (1 to 512 groups, K of 0, 1, 127, 128, 129 and very uneven), each with every
// kernel that serves it; the whole buffer of D is compared, guards and gaps included. Then bad
// metadata, splits, SM budgets from 1 to 132, the reports of the field, graphs whose metadata
// changes between replays, 1000 repeats, and operands and results of more than 2^31 elements. Exit
// code 1 on a mismatch, 77 without a usable device. A watchdog turns a hang into a failure.
#include <cstring>

#include "device_stages.h"
#include "options.h"
#include "wgrad_case.h"

namespace {

using namespace oct;
using namespace oct::test;

Kernels kernels_for(const octet_gemm_problem& p, int split) {
  return kernels_where([&](const abi::TileConfig& tile) {
    return tile.paired && plan::serves(tile, p, context->device_spec(), split).ok();
  });
}

void all_kernels(const HostCase& c, const Bytes& want, Arena& arena, cudaStream_t stream,
                 const char* what) {
  const DeviceOperands device(arena, c, stream);
  run_and_compare_all(kernels_for(c.problem, 1), 1, c, device, want, stream, what);
}

void every_kernel(int count, uint64_t seed, bool spoiled, double until, Arena& arena,
                  cudaStream_t stream) {
  const char* what = spoiled ? "bad metadata" : "random problems";
  const auto make = [&](uint64_t s) { return make_pair_case(s, spoiled); };
  random_cases(count, seed, until, what, make,
               [&](const GroupedCase& c) { all_kernels(c.host, c.want, arena, stream, what); });
}

constexpr const char* kFixed[] = {"dense_m700n1100k1000_1d1d_f32_acc",
                                  "dense_m257n130k2112_1d1d",
                                  "kgrouped_g7m300n520k200_f32_acc",
                                  "kgrouped_g5m130n700k300",
                                  "kgrouped_g40m70n72k90_f32",
                                  "kgrouped_g6m300n520k256_f32_acc_packed",
                                  "batched_g3m200n300k700_1d1d_f32_acc"};

void reports(Arena& arena, cudaStream_t stream) {
  for (const FieldReport& r : weight_gradient_reports()) {
    HostOptions options;
    options.group_sizes = r.sizes;
    options.odd_strides = false;
    options.gaps = false;
    HostCase c(parsed(r.problem.c_str()), options);
    ++problems;
    // F09: a channel that is all zero.
    const bool channel = std::strncmp(r.id, "F09", 3) == 0;
    if (channel) {
      for (int64_t k = 0; k < c.shape.b.cols; ++k) {
        c.b.data()[c.problem.packed ? 0 : k] = 0;
      }
      if (c.problem.packed) {
        int64_t before = 0;
        for (const int64_t size : c.sizes) {
          std::memset(c.b.data() + before * c.problem.n, 0, static_cast<std::size_t>(size));
          before += size;
        }
      }
    }
    const Bytes want = processor_result(c, 1, 0);
    if (channel) {
      for (int64_t m = 0; m < c.problem.m; ++m) {
        float x;
        std::memcpy(&x, &want[static_cast<std::size_t>(c.d_guard + 4 * m * c.shape.d.ld)], 4);
        if (x != 0.0f) {
          std::printf("FAILED: %s: the channel of zeros gives %g\n", r.id, static_cast<double>(x));
          ++failures;
          break;
        }
      }
    }
    all_kernels(c, want, arena, stream, r.id);
    // F08, F09: wrong or different only sometimes.
    if (r.id[1] != '0' || r.id[2] < '8') continue;
    const Repeats how{.count = 1000, .compared_every = 50};
    repeat(kernels_for(c.problem, 1), 1, c, want, how, arena, stream, r.id);
  }
  std::printf("field reports: %lld failures\n", static_cast<long long>(failures));
}

// One graph; K moves between groups from replay to replay.
void changed_counts(Arena& arena, cudaStream_t stream) {
  for (const char* text : {"kgrouped_g12m150n260k200_f32_acc", "kgrouped_g12m150n260k200_i64",
                           "kgrouped_g12m150n260k256_f32_packed"}) {
    octet_gemm_problem p = parsed(text);
    HostOptions options;
    options.gaps = false;
    options.poison = false;
    options.group_sizes.assign(12, 256);
    HostCase c(p, options);
    const DeviceOperands device(arena, c, stream);
    for (const char* kernel : kernels_for(p, 1)) {
      changing_replays(plan_for(p, kernel, 1), c, device, 8, spoil_k, stream);
    }
  }
  std::printf("graphs with changing metadata: %lld failures\n", static_cast<long long>(failures));
}

// Operands (F14) and results of more than 2^31 elements, against the device's reference.
void large(cudaStream_t stream) {
  struct Size {
    const char* what;
    int64_t groups, m, n, total;
    octet_type d_type;
  };
  for (const Size& s : {Size{"F14", 3, 7168, 40, 300032, OCTET_F32},
                        Size{"results beyond 2^31", 5, 20608, 21000, 640, OCTET_BF16}}) {
    octet_gemm_problem p = core::default_problem();
    p.grouping = OCTET_K_GROUPED;
    p.granularity = OCTET_1D1D;
    p.sfb_layout = OCTET_COLUMN_MAJOR;
    p.groups = s.groups;
    p.m = s.m;
    p.n = s.n;
    p.k = s.total / s.groups;
    p.d_type = s.d_type;
    p.index_type = OCTET_I64;
    const int64_t blocks = s.total / 128, element = core::size_of(s.d_type);
    const int64_t one = s.m * s.n, bytes = s.groups * one * element;
    Arena arena(static_cast<std::size_t>((s.m + s.n) * s.total + 2 * bytes +
                                         4 * blocks * (s.m + s.n + 8) + 65536));
    auto* a = static_cast<uint8_t*>(arena.take(s.m * s.total));
    auto* b = static_cast<uint8_t*>(arena.take(s.n * s.total));
    auto* sfa = static_cast<float*>(arena.take(4 * s.m * blocks));
    auto* sfb = static_cast<float*>(arena.take(4 * s.n * blocks));
    void *d = arena.take(bytes), *want = arena.take(bytes);
    fill_codes(a, s.m, s.total, s.total, 1, 0, Codes::kGaussian, 1, stream);
    fill_codes(b, s.n, s.total, s.total, 1, 0, Codes::kGaussian, 2, stream);
    fill_scales(sfa, s.m, blocks, 1, s.m, 1, 0, ScaleKind::kOrdinary, 3, stream);
    fill_scales(sfb, s.n, blocks, 1, s.n, 1, 0, ScaleKind::kOrdinary, 4, stream);
    // Uneven: the last group takes what the others leave.
    std::vector<int64_t> metadata(static_cast<std::size_t>(2 * s.groups));
    for (int64_t g = 0, start = 0; g < s.groups; ++g) {
      const auto i = static_cast<std::size_t>(g);
      metadata[i] = start;
      metadata[i + static_cast<std::size_t>(s.groups)] =
          g + 1 == s.groups ? s.total - start : 128 * (blocks / (2 * s.groups) + g % 2);
      start += metadata[i + static_cast<std::size_t>(s.groups)];
    }
    auto* device_metadata =
        static_cast<int64_t*>(arena.take(static_cast<int64_t>(metadata.size()) * 8));
    OCT_CUDA(cudaMemcpyAsync(device_metadata, metadata.data(), metadata.size() * 8,
                             cudaMemcpyHostToDevice, stream));
    octet_gemm_args args{};
    args.struct_size = sizeof args;
    args.a = {a, s.m, s.total, s.total, 0};
    args.b = {b, s.n, s.total, s.total, 0};
    args.d = {d, s.m, s.n, s.n, one};
    args.sfa = {sfa, 1, s.m, 0};
    args.sfb = {sfb, 1, s.n, 0};
    args.group_offsets = device_metadata;
    args.group_counts = device_metadata + s.groups;
    fill_bytes(want, bytes, 5, stream);
    for (int64_t g = 0; g < s.groups; ++g) {
      const int64_t start = metadata[static_cast<std::size_t>(g)];
      ReferenceGemm r{};
      r.m = s.m;
      r.n = s.n;
      r.k = metadata[static_cast<std::size_t>(g + s.groups)];
      r.batches = 1;
      r.a = a + start;
      r.b = b + start;
      r.a_ld = r.b_ld = s.total;
      r.sfa = sfa + start / 128 * s.m;
      r.sfb = sfb + start / 128 * s.n;
      r.sfa_row = r.sfb_row = 1;
      r.sfa_k = s.m;
      r.sfb_k = s.n;
      r.sfb_rows = 1;
      r.d = static_cast<char*>(want) + g * one * element;
      r.d_ld = s.n;
      r.d_type = s.d_type;
      r.split = 1;
      reference_gemm(r, stream);
    }
    unsigned long long* result = static_cast<unsigned long long*>(arena.take(256));
    ++problems;
    for (const char* kernel : kernels_for(p, 1)) {
      OCT_CUDA(cudaMemsetAsync(result, 0, 16, stream));
      fill_bytes(d, bytes, 6, stream);
      const Status status = context->run(plan_for(p, kernel, 1), args, stream);
      compare_words(d, want, bytes, result, stream);
      unsigned long long got[2];
      OCT_CUDA(cudaMemcpyAsync(got, result, sizeof got, cudaMemcpyDeviceToHost, stream));
      const cudaError_t e = cudaStreamSynchronize(stream);
      ++launches;
      if (!status.ok() || e != cudaSuccess || got[0] != 0) {
        ++failures;
        std::printf("FAILED: %s: %s: %s %s, %llu words differ, the first at %llu\n", s.what, kernel,
                    status.message().c_str(), cudaGetErrorString(e), got[0], got[1]);
      }
    }
    std::printf("%s: %lld failures\n", s.what, static_cast<long long>(failures));
    arena.release();
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options{.problems = 1200, .seconds = 60};
  parse(argc, argv,
        {"--problems", "--seconds", "--seed", "--kernel", "--problem", "--small", "--skip-large"},
        options);
  only_kernel = options.kernel;
  const int count = options.problems;
  const double most_seconds = options.seconds;
  const uint64_t seed = options.seed;
  const bool small = options.small, with_large = options.large;
  const cudaStream_t stream = open_device(static_cast<unsigned>(3 * most_seconds) + 120);
  Arena arena(std::size_t{1} << 30);
  load(kernels_where([](const abi::TileConfig& tile) { return tile.paired; }));
  if (!options.problem.empty()) return one_problem(options.problem, kernels_for, arena, stream);
  const Stopwatch clock;
  const auto told = [&] { std::printf("  %.1f s\n", clock.seconds()); };
  every_kernel(small ? 20 : count, seed, false, most_seconds, arena, stream);
  told();
  every_kernel(small ? 10 : count / 4, seed + 1, true, most_seconds / 4, arena, stream);
  if (!small) {
    splits(kFixed, 1, 9, kernels_for, arena, stream);
    std::printf("splits, every cluster size: %lld failures\n", static_cast<long long>(failures));
    told();
    planned(count / 6, seed + 2, most_seconds / 4, make_pair_case, arena, stream);
    told();
    reports(arena, stream);
    told();
    sm_counts(kFixed, kernels_for, arena, stream);
    told();
    changed_counts(arena, stream);
    told();
    repeats(kFixed, {1, 2, 3, 5, 8}, 1000, 4, kernels_for, arena, stream);
    told();
    if (with_large) large(stream);
    told();
  }
  return verdict();
}
