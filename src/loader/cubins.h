// The kernels inside the library, as the bytes that the driver loads. The table is written by the
// build (device/make_kernel_sources.py); a build without nvcc has an empty one (no_cubins.cpp).
#pragma once

#include <span>
#include <string_view>

namespace oct::loader {

struct Cubin {
  const char* name;  // of the kernel, and of the entry function inside
  const unsigned char* begin;
  const unsigned char* end;
};

std::span<const Cubin> cubins();

// Null if this build has no such kernel.
inline const Cubin* find_cubin(std::string_view name) {
  for (const Cubin& cubin : cubins()) {
    if (name == cubin.name) return &cubin;
  }
  return nullptr;
}

}  // namespace oct::loader
