// See device_memory.h: builds without nvcc. Commands ask for kernels before they ask for memory, so
// that nobody should get here; who does is told why.
#include "device_memory.h"

namespace octet::tool {
namespace {

[[noreturn]] void none() {
  throw DeviceError("this build has no kernels (" OCTET_WHY_NO_KERNELS
                    "): build it with OCTET_CUDA=require, where nvcc is installed");
}

}  // namespace

DeviceStream::DeviceStream(int) { none(); }
DeviceStream::~DeviceStream() = default;
bool DeviceStream::wait(double) const { none(); }
DeviceBuffer::DeviceBuffer(std::size_t bytes) {
  if (bytes > 0) none();
}
DeviceBuffer::~DeviceBuffer() = default;
void DeviceBuffer::upload(const void*, std::size_t, const DeviceStream&) { none(); }
void DeviceBuffer::download(void*, std::size_t, const DeviceStream&) const { none(); }

}  // namespace octet::tool
