// Reads and writes .npy files, NumPy's format for one array: a magic string, a version, a header
// that is a Python dictionary of three entries, then the elements. Little-endian arrays in C order
// of float32, float16, uint8 and uint16 are read (and what ml_dtypes saves e4m3 and bfloat16 as:
// bytes without a type); the rest is refused by name. NumPy has no names for e4m3 and BF16, so both
// travel as unsigned integers of their size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mapped_file.h"
#include "tensor.h"

namespace octet::tool {

// The three entries, as they stand.
struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Throws std::runtime_error with what is wrong, to be said after the file's name.
NpyHeader parse_npy_header(std::string_view text);

// A whole file's bytes, in which the tensor's lie. Throws as above.
Tensor parse_npy(const std::byte* data, int64_t size);

class Npy {
 public:
  // Throws std::runtime_error with one sentence that names the file and what is wrong with it.
  explicit Npy(const std::string& path);
  const Tensor& tensor() const { return tensor_; }  // U8, U16, F16 or F32

 private:
  MappedFile file_;
  Tensor tensor_;
};

// What stands before the elements: magic, version, header, padded to a multiple of 64 bytes.
// E4M3 and UE8M0 become uint8, BF16 uint16.
std::string npy_preamble(octet_type type, const std::vector<int64_t>& shape);

}  // namespace octet::tool
