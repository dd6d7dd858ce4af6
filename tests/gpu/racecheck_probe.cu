// What compute-sanitizer's racecheck follows of asynchronous loads: docs/sanitizers.md names what
// this program shows. One warp loads 4 bytes a lane with cp.async and another reads them when an
// mbarrier says that they have landed. Four ways to bring them and to arrive, each correct by the
// PTX manual:
//
//   usage: racecheck_probe noinc | incremented | waited | stored
//
//   noinc         cp.async.mbarrier.arrive.noinc, as the kernels' producers of scales do
//   incremented   the same without .noinc
//   waited        cp.async.wait_all, then an ordinary arrival
//   stored        no cp.async: an ordinary store, as the scheduler of grouped kernels lists its
//   tiles
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

enum Way { kNoinc, kIncremented, kWaited, kStored };

// A ring of two places, filled and emptied kRounds times: with one use of a place nothing could be
// overwritten too early.
constexpr int kPlaces = 2, kRounds = 6;

__device__ void wait(uint32_t bar, uint32_t parity) {
  uint32_t done = 0;
  for (int polls = 0; done == 0 && polls < 1 << 24; ++polls) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
  }
}
__device__ void arrive(uint32_t bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

template <Way kWay>
__global__ void probe(const float* from, float* to) {
  __shared__ float landed[kPlaces][32];
  __shared__ uint64_t barriers[2 * kPlaces];  // full, then empty
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(barriers));
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x < 2 * kPlaces) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar + 8 * threadIdx.x),
                 "r"(threadIdx.x < kPlaces ? 32 : 1)
                 : "memory");
  }
  __syncthreads();
  float sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    const int place = round % kPlaces;
    const uint32_t full = bar + 8 * place, empty = full + 8 * kPlaces;
    if (warp == 0) {
      if (round >= kPlaces) wait(empty, (round / kPlaces - 1) & 1);
      if (kWay == kStored) {
        *static_cast<volatile float*>(&landed[place][lane]) = from[lane];
      } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(
                         static_cast<uint32_t>(__cvta_generic_to_shared(&landed[place][lane]))),
                     "l"(from + lane)
                     : "memory");
      }
      if (kWay == kNoinc) {
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(full) : "memory");
      } else if (kWay == kIncremented) {
        asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(full) : "memory");
        arrive(full);
      } else if (kWay == kWaited) {
        asm volatile("cp.async.wait_all;" ::: "memory");
        arrive(full);
      } else {
        arrive(full);
      }
    } else {
      wait(full, round / kPlaces & 1);
      sum += *static_cast<volatile float*>(&landed[place][31 - lane]);
      __syncwarp();
      if (lane == 0) arrive(empty);
    }
  }
  if (warp == 1) to[lane] = sum / kRounds;
}

}  // namespace

int main(int argc, char** argv) {
  const char* way = argc == 2 ? argv[1] : "";
  float host[32], *from = nullptr, *to = nullptr;
  for (int i = 0; i < 32; ++i) host[i] = static_cast<float>(i);
  if (cudaMalloc(&from, sizeof host) != cudaSuccess ||
      cudaMalloc(&to, sizeof host) != cudaSuccess ||
      cudaMemcpy(from, host, sizeof host, cudaMemcpyHostToDevice) != cudaSuccess) {
    std::printf("no device\n");
    return 77;
  }
  if (std::strcmp(way, "noinc") == 0) {
    probe<kNoinc><<<1, 64>>>(from, to);
  } else if (std::strcmp(way, "incremented") == 0) {
    probe<kIncremented><<<1, 64>>>(from, to);
  } else if (std::strcmp(way, "waited") == 0) {
    probe<kWaited><<<1, 64>>>(from, to);
  } else if (std::strcmp(way, "stored") == 0) {
    probe<kStored><<<1, 64>>>(from, to);
  } else {
    std::printf("usage: racecheck_probe noinc | incremented | waited | stored\n");
    return 2;
  }
  if (cudaMemcpy(host, to, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  for (int i = 0; i < 32; ++i) {
    if (host[i] != static_cast<float>(31 - i)) {
      std::printf("element %d is %g\n", i, static_cast<double>(host[i]));
      return 1;
    }
  }
  std::printf("right\n");
  return 0;
}
