// Records what a Hopper GPU computes for the cases of gemm_cases.h, and compares the processor with
// it.
//
//   record_gemms FILE                  on the first device
//   record_gemms FILE --backend cpu    on the processor: to try the way through the file, never to
//                                      be checked in; the file says what made it
//
// Built where nvcc is (target record_gemms). Every kernel that serves a case computes it, all must
// give the same bits and leave what lies around D alone; otherwise nothing is written. Exit code 1
// on that, and when the processor's bits differ from the device's (the file is written then, for a
// look at it); 2 on wrong use, 3 without a usable device.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "cuda/context.h"
#include "golden/gemm_recording.h"
#include "plan/device_presets.h"

namespace {

using namespace oct;
using golden::GemmInputs;
using testing_support::Buffer;

constexpr unsigned kMostSeconds = 300;  // a hang becomes a failure

Status fail(const char* what, cudaError_t error) {
  return {OCTET_DEVICE_ERROR, std::string(what) + ": " + cudaGetErrorString(error)};
}

// A copy of host memory on the device.
class DeviceCopy {
 public:
  ~DeviceCopy() { cudaFree(data_); }
  Status make(const void* from, int64_t bytes) {
    bytes_ = static_cast<std::size_t>(bytes);
    if (bytes_ == 0) return {};
    if (const cudaError_t e = cudaMalloc(&data_, bytes_); e != cudaSuccess) {
      return fail("cudaMalloc", e);
    }
    const cudaError_t e = cudaMemcpy(data_, from, bytes_, cudaMemcpyHostToDevice);
    return e == cudaSuccess ? Status{} : fail("copy to the device", e);
  }
  Status fetch(void* to) const {
    const cudaError_t e = cudaMemcpy(to, data_, bytes_, cudaMemcpyDeviceToHost);
    return e == cudaSuccess ? Status{} : fail("copy from the device", e);
  }
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// The stream takes turns with the copies, which use the default one.
Status compute_on_device(cuda::Context& context, cudaStream_t stream, const octet_gemm_plan& plan,
                         const GemmInputs& inputs, uint8_t* d_memory) {
  DeviceCopy copies[7];
  const Buffer* buffers[] = {&inputs.a, &inputs.b,    &inputs.sfa, &inputs.sfb,
                             &inputs.c, &inputs.bias, &inputs.d};
  for (int i = 0; i < 7; ++i) {
    const void* from = i == 6 ? d_memory : buffers[i]->data();
    if (Status s = copies[i].make(from, buffers[i]->size()); !s.ok()) return s;
  }
  const golden::GemmMemory memory{copies[0].data(), copies[1].data(), copies[2].data(),
                                  copies[3].data(), copies[4].data(), copies[5].data(),
                                  copies[6].data()};
  if (Status s = context.load(plan.kernel); !s.ok()) return s;
  if (Status s = context.run(plan, inputs.args(memory), stream); !s.ok()) return s;
  if (const cudaError_t e = cudaStreamSynchronize(stream); e != cudaSuccess) {
    return fail("the kernel", e);
  }
  return copies[6].fetch(d_memory);
}

int wrong_use() {
  std::fprintf(stderr, "usage: record_gemms FILE [--backend gpu|cpu]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) return wrong_use();
  if (argc == 4 && std::strcmp(argv[2], "--backend") != 0) return wrong_use();
  const std::string backend = argc == 4 ? argv[3] : "gpu";
  if (backend != "gpu" && backend != "cpu") return wrong_use();
  alarm(kMostSeconds);

  std::unique_ptr<cuda::Context> context;
  cudaStream_t stream = nullptr;
  octet_device_spec device;
  std::string computed_by = "cpu";
  golden::Compute compute = golden::compute_on_cpu(OCTET_ISA_AUTO);
  if (backend == "gpu") {
    Status s = cuda::Context::create(0, context);
    if (s.ok() && (cudaSetDevice(0) != cudaSuccess || cudaStreamCreate(&stream) != cudaSuccess)) {
      s = {OCTET_NO_DEVICE, "the CUDA run-time library cannot use device 0"};
    }
    if (!s.ok()) {
      std::fprintf(stderr, "record_gemms: %s\n", s.message().c_str());
      return 3;
    }
    device = context->device_spec();
    computed_by = std::string(context->device_name()) + ", driver " +
                  std::to_string(context->driver_version());
    compute = [&](const octet_gemm_plan& plan, const GemmInputs& inputs, uint8_t* d_memory) {
      return compute_on_device(*context, stream, plan, inputs, d_memory);
    };
  } else if (Status s = plan::device_preset("h200", device); !s.ok()) {
    std::fprintf(stderr, "record_gemms: %s\n", s.message().c_str());
    return 3;
  }

  golden::Recording recording = golden::record(golden::kGemmCases, device, compute);
  if (!recording.wrong.empty()) {
    constexpr std::size_t kShown = 40;
    for (std::size_t i = 0; i < std::min(recording.wrong.size(), kShown); ++i) {
      std::printf("WRONG: %s\n", recording.wrong[i].c_str());
    }
    std::printf("%zu runs are wrong: nothing is written\n", recording.wrong.size());
    return 1;
  }
  recording.file.computed_by = computed_by;
  const std::vector<uint8_t> bytes = golden::pack(recording.file);
  std::ofstream out(argv[1], std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) {
    std::fprintf(stderr, "record_gemms: %s: cannot be written\n", argv[1]);
    return 2;
  }
  std::size_t runs = 0, different = 0, elements = 0;
  for (const golden::GemmRecord& r : recording.file.records) {
    runs += r.runs.size();
    elements += r.d.size();
    const std::string what = disagreement(r, golden::compute_on_cpu(OCTET_ISA_AUTO));
    if (what.empty()) continue;
    ++different;
    std::printf("MISMATCH of processor and device: %s\n", what.c_str());
  }
  std::printf(
      "%s: %zu problems, %zu runs, %zu bytes of results, %zu bytes of file; %zu problems in "
      "which the processor differs\n",
      computed_by.c_str(), recording.file.records.size(), runs, elements, bytes.size(), different);
  return different == 0 ? 0 : 1;
}
