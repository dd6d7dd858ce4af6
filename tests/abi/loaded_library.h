// Functions of a library that dlopen() has brought in, for programs that use it as language
// bindings do.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace octet_abi {

// Ends the program with a sentence if the library has no such function.
template <typename Function>
void find(void* handle, const char* name, Function& function) {
  void* const address = dlsym(handle, name);
  if (address == nullptr) {
    std::printf("FAILED: %s\n", dlerror());
    std::exit(1);
  }
  std::memcpy(&function, &address, sizeof address);
}

}  // namespace octet_abi
