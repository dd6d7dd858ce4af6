// A tensor as it lies in a file of either format, and what its type's name means. Types are called
// by their names in .safetensors: "F32", "BF16", "F16", "F8_E4M3", "U8", ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/octet.h"

namespace octet::tool {

struct Tensor {
  std::string dtype;
  std::vector<int64_t> shape;       // outermost first; the last is contiguous
  const std::byte* data = nullptr;  // little-endian, at any byte
  int64_t bytes = 0;
};

// Bytes of one element; 0 if there is no such type.
int64_t dtype_bytes(std::string_view dtype);

// "F32, BF16, ..."
std::string dtype_names();

// The library's name of a type; OCTET_NONE for those it has no use for.
octet_type dtype_to_octet(std::string_view dtype);
// And back; for E4M3, UE8M0, BF16, F16 and F32.
const char* octet_to_dtype(octet_type type);

// "[3, 4]"
std::string shape_text(const std::vector<int64_t>& shape);

// Text from a file or the command line, fit for one line of a message: control characters become
// '?', and what is very long is cut.
std::string printable(std::string_view text);

// `count` elements as FP32, from any address. UE8M0 bytes are the powers of two they stand for, 0
// for byte 0 and NaN for 0xff; the type must be one of E4M3, UE8M0, BF16, F16 and F32.
void to_floats(octet_type type, const std::byte* from, int64_t count, float* to);

}  // namespace octet::tool
