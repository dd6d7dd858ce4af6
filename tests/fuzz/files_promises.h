// What the readers of files promise for any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "fuzz_input.h"
#include "tensor.h"

namespace octet_fuzz {

inline void promise_one_line(const std::string& text) {
  for (const char c : text) {
    promise(static_cast<unsigned char>(c) >= ' ' && c != 0x7f, "a sentence is one line");
  }
}

// Whether it was read. The only other way out is an exception that says what is wrong.
template <typename Read>
bool read_or_refused(const Read& read) {
  try {
    read();
    return true;
  } catch (const std::runtime_error& error) {
    const std::string said = error.what();
    promise(!said.empty() && said.size() < 2000, "a refusal is one sentence");
    promise_one_line(said);
    return false;
  }
}

// Every byte of the tensor is one of the file's, and there are as many as its shape says.
inline void promise_inside(const octet::tool::Tensor& tensor, const std::byte* file,
                           std::size_t size) {
  promise(tensor.bytes >= 0 && tensor.data >= file, "a tensor begins in the file");
  promise(tensor.bytes <= file + size - tensor.data, "a tensor ends in the file");
  __int128 bytes = octet::tool::dtype_bytes(tensor.dtype);
  promise(bytes > 0, "a tensor has a type that is known");
  for (const int64_t extent : tensor.shape) {
    promise(extent >= 0, "no extent is negative");
    // Once more than a file can hold, only 0 makes it fit.
    bytes = bytes > INT64_MAX && extent > 0 ? bytes : bytes * extent;
  }
  promise(bytes == tensor.bytes, "a tensor has the bytes of its shape");
}

}  // namespace octet_fuzz
