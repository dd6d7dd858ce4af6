// gemms.bin: whole products, as a GPU computed them.
//
// Layout, little-endian; text is u32 length and that many bytes: "OCTETGMM", u32 version (1), text
// what computed it ("NVIDIA H200, driver 13000"), u32 problems; then each problem:
//   text problem string (its seed draws the inputs: gemm_inputs.h), u32 class of the operands, u32
//   class of the scales, u32 split, u64 checksum of the inputs
//   u32 runs, then each: text kernel, u32 most CTAs
//   u32 bytes, then the elements of D, row after row
// and last a u64: FNV-1a of all bytes before it. Every run of a problem gave these very elements:
// they depend on the inputs and on the split alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "golden/golden_file.h"

namespace oct::golden {

struct GemmRun {
  std::string kernel;
  uint32_t ctas = 0;
};

struct GemmRecord {
  std::string problem;
  uint32_t input_class = 0, scale_class = 0, split = 1;
  uint64_t input_checksum = 0;
  std::vector<GemmRun> runs;
  std::vector<uint8_t> d;
};

struct GemmFile {
  std::string computed_by;
  std::vector<GemmRecord> records;
};

inline std::vector<uint8_t> pack(const GemmFile& file) {
  std::vector<uint8_t> out;
  const auto put = [&out](const void* data, std::size_t size) {
    const std::size_t at = out.size();
    out.resize(at + size);
    if (size > 0) std::memcpy(out.data() + at, data, size);
  };
  const auto number = [&put](std::size_t x) {
    const auto narrow = static_cast<uint32_t>(x);
    put(&narrow, sizeof narrow);
  };
  const auto text = [&](const std::string& x) {
    number(x.size());
    put(x.data(), x.size());
  };
  put("OCTETGMM", 8);
  number(1);
  text(file.computed_by);
  number(file.records.size());
  for (const GemmRecord& r : file.records) {
    text(r.problem);
    number(r.input_class);
    number(r.scale_class);
    number(r.split);
    put(&r.input_checksum, sizeof r.input_checksum);
    number(r.runs.size());
    for (const GemmRun& run : r.runs) {
      text(run.kernel);
      number(run.ctas);
    }
    number(r.d.size());
    put(r.d.data(), r.d.size());
  }
  const uint64_t sum = fnv1a(out.data(), out.size());
  put(&sum, sizeof sum);
  return out;
}

// Throws std::runtime_error on anything that does not follow the layout.
inline GemmFile unpack_gemms(const std::vector<uint8_t>& bytes) {
  if (bytes.size() < 32) throw std::runtime_error("golden products: too short");
  const std::size_t end = bytes.size() - 8;
  uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + end, 8);
  if (fnv1a(bytes.data(), end) != sum) {
    throw std::runtime_error("golden products: checksum does not match");
  }
  std::size_t at = 0;
  const auto take = [&](void* to, std::size_t size) {
    if (end - at < size) throw std::runtime_error("golden products: truncated");
    if (size > 0) std::memcpy(to, bytes.data() + at, size);
    at += size;
  };
  const auto number = [&take] {
    uint32_t x = 0;
    take(&x, sizeof x);
    return x;
  };
  // A length, before room is made for it.
  const auto length = [&] {
    const uint32_t x = number();
    if (end - at < x) throw std::runtime_error("golden products: truncated");
    return x;
  };
  const auto text = [&] {
    std::string x(length(), 0);
    take(x.data(), x.size());
    return x;
  };
  char magic[8];
  take(magic, sizeof magic);
  if (std::memcmp(magic, "OCTETGMM", 8) != 0 || number() != 1) {
    throw std::runtime_error("golden products: not a file of version 1");
  }
  GemmFile file;
  file.computed_by = text();
  for (uint32_t left = number(); left > 0; --left) {
    GemmRecord r;
    r.problem = text();
    r.input_class = number();
    r.scale_class = number();
    r.split = number();
    take(&r.input_checksum, sizeof r.input_checksum);
    for (uint32_t runs = number(); runs > 0; --runs) {
      GemmRun run;
      run.kernel = text();
      run.ctas = number();
      r.runs.push_back(std::move(run));
    }
    r.d.resize(length());
    take(r.d.data(), r.d.size());
    file.records.push_back(std::move(r));
  }
  if (at != end) throw std::runtime_error("golden products: bytes left over");
  return file;
}

}  // namespace oct::golden
