// NVIDIA's driver, found at run time: the only file (with driver.cpp) that names its functions. The
// few types below repeat the driver's binary interface, so that nothing of the CUDA toolkit is
// needed to compile or to run this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "kernel_abi/kernel_params.h"

namespace oct::cuda {

using Result = int;  // 0 is success
using Device = int;
using ContextHandle = void*;
using Module = void*;
using Function = void*;
using Stream = void*;

// Binary twins of the driver's launch structures.
struct LaunchAttribute {
  uint32_t id;
  uint32_t pad;
  union {
    char bytes[64];
    struct {
      uint32_t x, y, z;
    } cluster;
    int32_t programmatic_serialization;
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72);
inline constexpr uint32_t kAttributeCluster = 4;
inline constexpr uint32_t kAttributeProgrammaticSerialization = 6;

struct LaunchConfig {
  uint32_t grid_x, grid_y, grid_z;
  uint32_t block_x, block_y, block_z;
  uint32_t shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  uint32_t attribute_count;
};

enum class TensorType : int { kUint8 = 0, kFloat16 = 6, kFloat32 = 7, kBfloat16 = 9 };
enum class Swizzle : int { kNone = 0, k32 = 1, k64 = 2, k128 = 3 };
enum class Promotion : int { kNone = 0, k128 = 2, k256 = 3 };

enum class DeviceAttribute : int {
  kSms = 16,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kMajor = 75,
  kMinor = 76,
  kSharedMemoryOptin = 97
};
enum class FunctionAttribute : int { kDynamicSharedBytes = 8, kNonPortableCluster = 14 };

struct Driver {
  int version = 0;  // 13000 is 13.0

  Result (*init)(unsigned);
  Result (*driver_version)(int*);
  Result (*device_count)(int*);
  Result (*device_get)(Device*, int);
  Result (*device_name)(char*, int, Device);
  Result (*device_attribute)(int*, DeviceAttribute, Device);
  Result (*primary_retain)(ContextHandle*, Device);
  Result (*primary_release)(Device);
  Result (*context_current)(ContextHandle*);
  Result (*context_push)(ContextHandle);
  Result (*context_pop)(ContextHandle*);
  Result (*module_load)(Module*, const void*);
  Result (*module_unload)(Module);
  Result (*module_function)(Function*, Module, const char*);
  Result (*copy_to_host)(void*, uint64_t from, std::size_t, Stream);
  Result (*stream_wait)(Stream);
  Result (*function_set)(Function, FunctionAttribute, int);
  Result (*function_load)(Function);  // null before driver 12.4
  Result (*launch)(const LaunchConfig*, Function, void**, void**);
  Result (*encode_tiled)(abi::TensorMap*, TensorType, uint32_t rank, void* address,
                         const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                         const uint32_t* element_strides, int interleave, Swizzle, Promotion,
                         int oob_fill);
  Result (*max_active_clusters)(int*, Function, const LaunchConfig*);
  Result (*stream_capturing)(Stream, int*);
  Result (*error_name)(Result, const char**);
  Result (*error_string)(Result, const char**);

  // A failed call in words.
  Status fail(const char* doing, Result result) const;
};

// The driver, initialised; loaded once for the process, on the first call. The status says why
// there is none: no driver library, a driver too old for this build's kernels, no device.
Status driver(const Driver*& out);

// Makes a context current for a scope and leaves the thread's current context as it was.
class Current {
 public:
  Current(const Driver& driver, ContextHandle context);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  Result result() const { return result_; }

 private:
  const Driver& driver_;
  Result result_ = 0;
  bool pushed_ = false;
};

}  // namespace oct::cuda
