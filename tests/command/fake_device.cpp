// See fake_device.h. The definitions of an executable come before those of the shared library.
#include "fake_device.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "device_memory.h"
#include "octet/octet.h"

namespace octet::fake {

std::string mode() {
  const char* value = std::getenv("OCTET_FAKE_DEVICE");
  return value == nullptr ? "right" : value;
}

}  // namespace octet::fake

struct octet_cuda_context {};
struct octet_cuda_bound {
  octet_gemm_plan plan;
  octet_gemm_args args;
};

namespace {

using octet::fake::mode;

constexpr const char* kKernels[] = {"normal_m128n128_x2", "swapped_w64t16_k2_x2_b2",
                                    "normal_m128n64_seq"};

// With some sentence of the library's as the message.
octet_code refuse(octet_code code) {
  octet_gemm_plan plan;
  return octet_gemm_plan_parse("no plan", &plan) == OCTET_OK ? OCTET_INTERNAL : code;
}

bool serves(const octet_gemm_plan& plan) {
  if (std::strcmp(plan.kernel, kKernels[0]) == 0) return plan.split <= 2;
  if (std::strcmp(plan.kernel, kKernels[1]) == 0) return plan.split == 2;
  return std::strcmp(plan.kernel, kKernels[2]) != 0 || plan.split <= 3;
}

// Row 20, column 70 of the last group, unless one of the normal kernels above computes it.
void spoil(const octet_cuda_bound& bound) {
  const octet_matrix& d = bound.args.d;
  if (std::strcmp(bound.plan.kernel, kKernels[0]) == 0 ||
      std::strcmp(bound.plan.kernel, kKernels[2]) == 0 || d.rows <= 20 || d.cols <= 70) {
    return;
  }
  const int64_t element = bound.plan.problem.d_type == OCTET_F32 ? 4 : 2;
  const int32_t grouping = bound.plan.problem.grouping;
  // Groups of other kinds share one matrix, and their stride leads far outside it.
  const bool of_its_own = grouping == OCTET_BATCHED || grouping == OCTET_MASKED;
  const int64_t group = of_its_own ? (bound.plan.problem.groups - 1) * d.group_stride : 0;
  auto* const bytes = static_cast<unsigned char*>(d.data);
  if (mode() == "wrong") bytes[(group + 20 * d.ld + 70) * element] ^= 1;
  if (mode() == "stray") bytes[(group + (d.rows - 1) * d.ld + d.cols) * element + 40] ^= 1;
}

}  // namespace

extern "C" {

int32_t octet_cuda_device_count(void) { return mode() == "none" ? 0 : 1; }
octet_code octet_cuda_driver_version(int32_t* version) {
  *version = 13000;
  return OCTET_OK;
}
octet_code octet_cuda_device_name(int32_t, char* text, size_t capacity) {
  std::snprintf(text, capacity, "Fake H200");
  return OCTET_OK;
}
octet_code octet_cuda_device_spec(int32_t ordinal, octet_device_spec* device) {
  if (mode() == "none" || ordinal != 0) return refuse(OCTET_NO_DEVICE);
  return octet_device_preset("h200", device);
}
int32_t octet_cuda_kernel_count(void) { return 3; }
const char* octet_cuda_kernel_name(int32_t index) { return kKernels[index]; }

octet_code octet_cuda_context_create(int32_t, octet_cuda_context** context) {
  *context = new octet_cuda_context;
  return OCTET_OK;
}
void octet_cuda_context_destroy(octet_cuda_context* context) { delete context; }
octet_code octet_cuda_context_device(const octet_cuda_context*, octet_device_spec* device) {
  return octet_device_preset("h200", device);
}
octet_code octet_cuda_prepare(octet_cuda_context*, const octet_gemm_plan*, int32_t) {
  return OCTET_OK;
}
octet_code octet_cuda_bind(octet_cuda_context*, const octet_gemm_plan* plan,
                           const octet_gemm_args* args, octet_cuda_bound** bound) {
  if (!serves(*plan)) return refuse(OCTET_UNSUPPORTED);
  if (const octet_code code = octet_check(plan, args); code != OCTET_OK) return code;
  *bound = new octet_cuda_bound{*plan, *args};
  return OCTET_OK;
}
void octet_cuda_bound_destroy(octet_cuda_bound* bound) { delete bound; }
octet_code octet_cuda_run_bound(const octet_cuda_context*, const octet_cuda_bound* bound, void*) {
  if (mode() == "fault") return refuse(OCTET_DEVICE_ERROR);
  const octet_code code = octet_cpu_run(&bound->plan, &bound->args, nullptr, nullptr);
  spoil(*bound);
  return code;
}

}  // extern "C"

namespace octet::tool {

DeviceStream::DeviceStream(int) {}
DeviceStream::~DeviceStream() = default;
bool DeviceStream::wait(double) const { return mode() != "hang"; }
DeviceBuffer::DeviceBuffer(std::size_t bytes) {
  if (bytes > 0) data_ = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  bytes_ = bytes;
}
DeviceBuffer::~DeviceBuffer() { std::free(data_); }
void DeviceBuffer::upload(const void* from, std::size_t bytes, const DeviceStream&) {
  if (bytes > 0) std::memcpy(data_, from, bytes);
}
void DeviceBuffer::download(void* to, std::size_t bytes, const DeviceStream&) const {
  if (bytes > 0) std::memcpy(to, data_, bytes);
}

}  // namespace octet::tool
