// Records what a Hopper GPU's tensor cores compute, and compares the model of src/ref with it.
//
//   record_instructions FOLDER            writes instructions_e4m3.bin and instructions_bf16.bin
//   record_instructions --soak SECONDS    random operands without end, the model run on the device
//
// Build, in the repository's root:
//
//   nvcc -O3 -std=c++20 -gencode=arch=compute_90a,code=sm_90a -Isrc -Itests
//     tests/golden/record_instructions.cu -o build/record_instructions
//
// Every recorded result is compared with the model; the counts are printed. Exit 1 on a mismatch.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "golden/golden_file.h"
#include "golden/input_classes.h"
#include "ref/tensor_core.h"

namespace {

using namespace oct;
using golden::Section;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}

// ------------------------------------------------------------------------------------- device ----

// No-swizzle K-major operand: matrices of 8 rows x 16 bytes, 128 bytes each, two side by side along
// K.
__device__ int core_offset(int row, int byte) {
  return row / 8 * 256 + byte / 16 * 128 + row % 8 * 16 + byte % 16;
}

__device__ uint64_t descriptor(const void* shared) {
  const auto address = static_cast<uint64_t>(__cvta_generic_to_shared(shared));
  return (address & 0x3ffff) >> 4 | uint64_t{128 >> 4} << 16 | uint64_t{256 >> 4} << 32;
}

// The registers of an asynchronous instruction must not be moved across this point.
__device__ void pin(float (&d)[4]) {
  for (float& x : d) asm volatile("" : "+f"(x)::"memory");
}

template <bool kE4m3>
__device__ void wgmma_m64n8(float (&d)[4], uint64_t a, uint64_t b) {
  pin(d);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  if constexpr (kE4m3) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%0,%1,%2,%3}, %4, %5, 1, 1, 1;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "l"(a), "l"(b));
  } else {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "l"(a), "l"(b));
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  pin(d);
}

// Row and column of register i of a thread.
__device__ int d_row(int i) { return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i / 2 * 8; }
__device__ int d_col(int i) { return threadIdx.x % 4 * 2 + i % 2; }

struct Operands {
  alignas(128) uint8_t a[golden::kTileA];
  alignas(128) uint8_t b[golden::kTileB];
};

// One tile a CTA of 128 threads.
template <bool kE4m3>
__global__ void __launch_bounds__(128)
    run_tiles(const uint8_t* a, const uint8_t* b, const uint32_t* c, uint32_t* d, int steps) {
  __shared__ Operands shared;
  const int64_t tile = blockIdx.x;
  float acc[4];
  for (int i = 0; i < 4; ++i) {
    acc[i] = __uint_as_float(c[tile * golden::kTileC + d_row(i) * golden::kCols + d_col(i)]);
  }
  for (int step = 0; step < steps; ++step) {
    const uint8_t* from_a = a + (tile * steps + step) * golden::kTileA;
    const uint8_t* from_b = b + (tile * steps + step) * golden::kTileB;
    __syncthreads();
    for (int i = threadIdx.x; i < golden::kTileA; i += 128) {
      shared.a[core_offset(i / 32, i % 32)] = from_a[i];
    }
    for (int i = threadIdx.x; i < golden::kTileB; i += 128) {
      shared.b[core_offset(i / 32, i % 32)] = from_b[i];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    wgmma_m64n8<kE4m3>(acc, descriptor(shared.a), descriptor(shared.b));
  }
  for (int i = 0; i < 4; ++i) {
    d[tile * golden::kTileC + d_row(i) * golden::kCols + d_col(i)] = __float_as_uint(acc[i]);
  }
}

__device__ uint32_t mix(uint64_t x) {
  x ^= x >> 31;
  x *= 0x7fb5d329728ea185ull;
  x ^= x >> 27;
  x *= 0x81dadef4bc2dd44dull;
  x ^= x >> 33;
  return static_cast<uint32_t>(x >> 7);
}

// A soak round draws its regime: bit 0 exponents in a narrow band (else all codes, for BF16 the
// middle of the range), bit 1 many zeros, bit 2 accumulators of very different size.
struct Regime {
  uint32_t bits;
  int low, span;
};

template <bool kE4m3>
__device__ uint8_t soak_byte(uint64_t key, int index, const Regime& g) {
  if (kE4m3) {
    const uint32_t r = mix(key + index);
    uint32_t x = r & 0xff;
    if (g.bits & 1) x = (x & 0x87) | ((g.low + (r >> 8 & 0xff) % g.span) & 15) << 3;
    if ((x & 0x7f) == 0x7f) x ^= 1;
    if ((g.bits & 2) && (r >> 16 & 7) < 3) x &= 0x80;
    return static_cast<uint8_t>(x);
  }
  const uint32_t r = mix(key + index / 2), r2 = mix(~key + index / 2);
  const uint32_t e = g.bits & 1 ? g.low + (r2 & 0x7ff) % g.span : 103 + (r2 & 0x7ff) % 48;
  uint32_t x = (r & 0x807f) | (e > 254 ? 254 : e) << 7;
  if ((g.bits & 2) && (r2 >> 12 & 7) < 3) x &= 0x8000;
  return static_cast<uint8_t>(index % 2 ? x >> 8 : x);
}

constexpr int kRegimes = 16;
struct SoakCounts {
  unsigned long long outputs[kRegimes], mismatches[kRegimes];
  unsigned int shown;
  uint32_t c, gpu, model, regime;
};

template <bool kE4m3>
__global__ void __launch_bounds__(128) soak(uint64_t seed, int rounds, SoakCounts* counts) {
  __shared__ Operands shared;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t key =
        (seed + static_cast<uint64_t>(blockIdx.x) * rounds + round) * 0x9e3779b97f4a7c15ull;
    const uint32_t h = mix(key);
    Regime g{h & 7, 0, 0};
    g.span = 1 + static_cast<int>((h >> 16) % (kE4m3 ? 8 : 60));
    g.low = static_cast<int>((h >> 8 & 0xff) % (kE4m3 ? 17 - g.span : 255 - g.span));
    __syncthreads();
    for (int i = threadIdx.x; i < golden::kTileA; i += 128) {
      shared.a[core_offset(i / 32, i % 32)] = soak_byte<kE4m3>(key ^ 0x1111, i, g);
    }
    for (int i = threadIdx.x; i < golden::kTileB; i += 128) {
      shared.b[core_offset(i / 32, i % 32)] = soak_byte<kE4m3>(key ^ 0x2222, i, g);
    }
    float acc[4];
    uint32_t c[4];
    for (int i = 0; i < 4; ++i) {
      const uint32_t r = mix(key + 777 + threadIdx.x * 4 + i),
                     e = mix(key + 99991 + threadIdx.x * 4 + i);
      int centre = kE4m3 ? (g.bits & 1 ? 113 + 2 * g.low + g.span : 133)
                         : (g.bits & 1 ? 2 * g.low + g.span - 127 : 127);
      const int field = g.bits & 4 ? centre - 28 + static_cast<int>(e % 57)
                                   : centre - 4 + static_cast<int>(e % 9);
      c[i] = (r & 0x807fffff) | static_cast<uint32_t>(field < 0     ? 0
                                                      : field > 254 ? 254
                                                                    : field)
                                    << 23;
      if (e >> 29 == 0) c[i] = 0;
      acc[i] = __uint_as_float(c[i]);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    wgmma_m64n8<kE4m3>(acc, descriptor(shared.a), descriptor(shared.b));
    const bool limits = !kE4m3 && (g.bits & 1) && (g.low < 64 || g.low + g.span > 190);
    const int regime = static_cast<int>(g.bits) + (limits ? 8 : 0);
    unsigned long long bad = 0;
    for (int i = 0; i < 4; ++i) {
      alignas(16) uint8_t a[32], b[32];
      for (int k = 0; k < 32; ++k) {
        a[k] = shared.a[core_offset(d_row(i), k)];
        b[k] = shared.b[core_offset(d_col(i), k)];
      }
      uint32_t model;
      if constexpr (kE4m3) {
        model = ref::wgmma_e4m3_k32(a, b, c[i]);
      } else {
        uint16_t x[16], y[16];
        for (int k = 0; k < 16; ++k) {
          x[k] = static_cast<uint16_t>(a[2 * k] | a[2 * k + 1] << 8);
          y[k] = static_cast<uint16_t>(b[2 * k] | b[2 * k + 1] << 8);
        }
        model = ref::wgmma_bf16_k16(x, y, c[i]);
      }
      if (model == __float_as_uint(acc[i])) continue;
      ++bad;
      if (atomicAdd(&counts->shown, 1) == 0) {
        counts->c = c[i];
        counts->gpu = __float_as_uint(acc[i]);
        counts->model = model;
        counts->regime = static_cast<uint32_t>(regime);
      }
    }
    if (bad) atomicAdd(&counts->mismatches[regime], bad);
    if (threadIdx.x == 0) atomicAdd(&counts->outputs[regime], 1ull * golden::kTileC);
  }
}

// --------------------------------------------------------------------------------------- host ----

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& from) : size_(from.size()) {
    check(cudaMalloc(&data_, size_ * sizeof(T)), "cudaMalloc");
    check(cudaMemcpy(data_, from.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "copy in");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  T* get() { return data_; }
  void download(std::vector<T>& to) {
    check(cudaMemcpy(to.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "copy out");
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

void run_on_device(uint32_t format, Section& s) {
  DeviceArray<uint8_t> a(s.a), b(s.b);
  DeviceArray<uint32_t> c(s.c), d(s.d);
  const auto kernel = format == golden::kE4m3 ? run_tiles<true> : run_tiles<false>;
  kernel<<<s.tiles, 128>>>(a.get(), b.get(), c.get(), d.get(), static_cast<int>(s.steps));
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), "run");
  d.download(s.d);
}

uint32_t model(uint32_t format, const Section& s, uint32_t tile, int r, int n) {
  uint32_t acc = s.c[std::size_t{tile} * golden::kTileC + r * golden::kCols + n];
  for (uint32_t step = 0; step < s.steps; ++step) {
    const uint8_t *a = s.row(tile, step, r), *b = s.col(tile, step, n);
    if (format == golden::kE4m3) {
      acc = ref::wgmma_e4m3_k32(a, b, acc);
    } else {
      acc = ref::wgmma_bf16_k16(reinterpret_cast<const uint16_t*>(a),
                                reinterpret_cast<const uint16_t*>(b), acc);
    }
  }
  return acc;
}

long record(uint32_t format, const std::string& path, uint32_t tiles, uint64_t seed, bool write) {
  golden::File file;
  file.format = format;
  long bad = 0;
  for (uint32_t input_class = 0; input_class < golden::kClasses; ++input_class) {
    for (uint32_t steps : {1u, 4u}) {
      Section s;
      s.input_class = input_class;
      s.steps = steps;
      s.tiles = tiles;
      s.resize();
      golden::Generator generator(format, input_class, seed + steps);
      for (uint32_t tile = 0; tile < s.tiles; ++tile) generator.fill(s, tile);
      run_on_device(format, s);
      long wrong = 0;
      for (uint32_t tile = 0; tile < s.tiles; ++tile) {
        for (int i = 0; i < golden::kTileC; ++i) {
          const uint32_t gpu = s.d[std::size_t{tile} * golden::kTileC + i];
          const uint32_t want = model(format, s, tile, i / golden::kCols, i % golden::kCols);
          if (gpu != want && wrong++ < 3) {
            std::printf("    tile %u row %d col %d: gpu %08x model %08x\n", tile, i / golden::kCols,
                        i % golden::kCols, gpu, want);
          }
        }
      }
      std::printf("  %-20s %u instruction%s  %9u results  %ld mismatches\n",
                  golden::kClassNames[input_class], steps, steps == 1 ? " " : "s",
                  s.tiles * golden::kTileC, wrong);
      bad += wrong;
      file.sections.push_back(std::move(s));
    }
  }
  if (write) {
    const std::vector<uint8_t> bytes = golden::pack(file);
    std::FILE* out = std::fopen(path.c_str(), "wb");
    if (out == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), out) != bytes.size() ||
        std::fclose(out) != 0) {
      std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
      std::exit(2);
    }
    std::printf("  %zu bytes\n", bytes.size());
  }
  return bad;
}

template <bool kE4m3>
long run_soak(double seconds) {
  SoakCounts host{};
  SoakCounts* counts;
  check(cudaMalloc(&counts, sizeof host), "cudaMalloc");
  check(cudaMemcpy(counts, &host, sizeof host, cudaMemcpyHostToDevice), "copy in");
  const auto start = std::chrono::steady_clock::now();
  uint64_t seed = 1;
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  do {
    soak<kE4m3><<<132 * 8, 128>>>(seed, 32, counts);
    check(cudaGetLastError(), "launch");
    check(cudaDeviceSynchronize(), "run");
    seed += 1ull << 32;
  } while (elapsed() < seconds);
  check(cudaMemcpy(&host, counts, sizeof host, cudaMemcpyDeviceToHost), "copy out");
  cudaFree(counts);
  unsigned long long outputs = 0, bad = 0;
  for (int i = 0; i < kRegimes; ++i) {
    if (host.outputs[i] == 0) continue;
    outputs += host.outputs[i];
    bad += host.mismatches[i];
    std::printf("  %-16s%-14s%-12s%-24s %14llu outputs  %llu mismatches\n",
                i & 1 ? "narrow exponents" : "all codes", i & 2 ? ", zeros" : "",
                i & 4 ? ", wide c" : "", i & 8 ? ", near under/overflow" : "", host.outputs[i],
                host.mismatches[i]);
  }
  std::printf("  %s: %llu outputs, %llu mismatches\n", kE4m3 ? "e4m3" : "bf16", outputs, bad);
  if (bad) {
    std::printf("  first: regime %u c %08x gpu %08x model %08x\n", host.regime, host.c, host.gpu,
                host.model);
  }
  return static_cast<long>(bad);
}

}  // namespace

int main(int argc, char** argv) {
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "device");
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "driver");
  std::printf("# gpu: %s, sm_%d%d, CUDA driver interface %d.%d\n", device.name, device.major,
              device.minor, driver / 1000, driver % 1000 / 10);
  if (device.major != 9 || device.minor != 0) {
    std::fprintf(stderr, "needs a Hopper GPU (sm_90)\n");
    return 2;
  }
  long bad = 0;
  if (argc == 3 && std::string(argv[1]) == "--soak") {
    const double seconds = std::atof(argv[2]);
    std::printf("\nsoak, e4m3: the model against the GPU on the device\n");
    bad += run_soak<true>(seconds);
    std::printf("\nsoak, bf16\n");
    bad += run_soak<false>(seconds);
    std::printf("\nclasses with 512 tiles, e4m3\n");
    bad += record(golden::kE4m3, "", 512, 1000, false);
    std::printf("\nclasses with 512 tiles, bf16\n");
    bad += record(golden::kBf16, "", 512, 1000, false);
  } else if (argc == 2) {
    const std::string folder = argv[1];
    std::printf("\nrecorded, e4m3\n");
    bad += record(golden::kE4m3, folder + "/instructions_e4m3.bin", 4, 1, true);
    std::printf("\nrecorded, bf16\n");
    bad += record(golden::kBf16, folder + "/instructions_bf16.bin", 4, 1, true);
  } else {
    std::fprintf(stderr,
                 "usage: record_instructions FOLDER | record_instructions --soak SECONDS\n");
    return 2;
  }
  std::printf("\nresult: %s\n", bad ? "MISMATCHES" : "the model and the GPU agree bit for bit");
  return bad != 0;
}
