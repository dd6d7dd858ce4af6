// Golden files of single and chained tensor-core instructions: what an H200 computed, with the
// inputs.
//
// Layout, little-endian: "OCTETGLD", u32 version (1), u32 format (1 e4m3, 2 bf16), u32 sections,
// u32 0; then each section: u32 class, u32 steps (instructions in the chain), u32 tiles, u32 0, and
//   A [tiles][steps][64 rows][32 bytes]   B [tiles][steps][8 columns][32 bytes]
//   C [tiles][64][8] u32                  D [tiles][64][8] u32
// and last a u64: FNV-1a of all bytes before it. A tile's rows and columns share inputs, so 512
// results cost 2,304 bytes of operands.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace oct::golden {

inline constexpr int kRows = 64, kCols = 8, kStepBytes = 32;
inline constexpr int kTileA = kRows * kStepBytes, kTileB = kCols * kStepBytes;
inline constexpr int kTileC = kRows * kCols;
inline constexpr uint32_t kE4m3 = 1, kBf16 = 2;

inline constexpr const char* kClassNames[] = {"gaussian, c=0",      "gaussian, fp32 c",
                                              "wide exponents",     "subnormals",
                                              "cancellation",       "one large + small",
                                              "all near max",       "large accumulators",
                                              "sparse zeros (+-0)", "terms near the cut",
                                              "any finite a,b,c",   "underflow",
                                              "c = any 32 bits",    "NaN / Inf inputs"};
inline constexpr uint32_t kClasses = 14;

struct Section {
  uint32_t input_class = 0, steps = 0, tiles = 0;
  std::vector<uint8_t> a, b;
  std::vector<uint32_t> c, d;

  void resize() {
    a.resize(std::size_t{tiles} * steps * kTileA);
    b.resize(std::size_t{tiles} * steps * kTileB);
    c.resize(std::size_t{tiles} * kTileC);
    d.resize(std::size_t{tiles} * kTileC);
  }
  // Operands of one chain step, 32 bytes: 32 e4m3 or 16 BF16 elements.
  const uint8_t* row(uint32_t tile, uint32_t step, int r) const {
    return a.data() + ((std::size_t{tile} * steps + step) * kRows + r) * kStepBytes;
  }
  const uint8_t* col(uint32_t tile, uint32_t step, int n) const {
    return b.data() + ((std::size_t{tile} * steps + step) * kCols + n) * kStepBytes;
  }
  uint8_t* row(uint32_t tile, uint32_t step, int r) {
    return const_cast<uint8_t*>(std::as_const(*this).row(tile, step, r));
  }
  uint8_t* col(uint32_t tile, uint32_t step, int n) {
    return const_cast<uint8_t*>(std::as_const(*this).col(tile, step, n));
  }
};

struct File {
  uint32_t format = 0;
  std::vector<Section> sections;
};

inline uint64_t fnv1a(const uint8_t* data, std::size_t size) {
  uint64_t h = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < size; ++i) h = (h ^ data[i]) * 0x100000001b3u;
  return h;
}

inline std::vector<uint8_t> pack(const File& file) {
  std::vector<uint8_t> out;
  const auto put = [&out](const void* data, std::size_t size) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    out.insert(out.end(), bytes, bytes + size);
  };
  const uint32_t head[] = {1, file.format, static_cast<uint32_t>(file.sections.size()), 0};
  put("OCTETGLD", 8);
  put(head, sizeof head);
  for (const Section& s : file.sections) {
    const uint32_t section[] = {s.input_class, s.steps, s.tiles, 0};
    put(section, sizeof section);
    put(s.a.data(), s.a.size());
    put(s.b.data(), s.b.size());
    put(s.c.data(), s.c.size() * 4);
    put(s.d.data(), s.d.size() * 4);
  }
  const uint64_t sum = fnv1a(out.data(), out.size());
  put(&sum, sizeof sum);
  return out;
}

// Throws std::runtime_error on anything that does not follow the layout.
inline File unpack(const std::vector<uint8_t>& bytes) {
  if (bytes.size() < 32) throw std::runtime_error("golden file: too short");
  uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - 8, 8);
  if (fnv1a(bytes.data(), bytes.size() - 8) != sum) {
    throw std::runtime_error("golden file: checksum does not match");
  }
  std::size_t at = 0;
  const auto take = [&](void* to, std::size_t size) {
    if (bytes.size() - 8 - at < size) throw std::runtime_error("golden file: truncated");
    std::memcpy(to, bytes.data() + at, size);
    at += size;
  };
  char magic[8];
  uint32_t head[4];
  take(magic, sizeof magic);
  take(head, sizeof head);
  if (std::memcmp(magic, "OCTETGLD", 8) != 0 || head[0] != 1) {
    throw std::runtime_error("golden file: not a golden file of version 1");
  }
  File file;
  file.format = head[1];
  for (uint32_t i = 0; i < head[2]; ++i) {
    uint32_t section[4];
    take(section, sizeof section);
    Section s;
    s.input_class = section[0];
    s.steps = section[1];
    s.tiles = section[2];
    if (s.input_class >= kClasses || s.steps > 64 || s.tiles > 65536) {
      throw std::runtime_error("golden file: absurd section");
    }
    s.resize();
    take(s.a.data(), s.a.size());
    take(s.b.data(), s.b.size());
    take(s.c.data(), s.c.size() * 4);
    take(s.d.data(), s.d.size() * 4);
    file.sections.push_back(std::move(s));
  }
  if (at != bytes.size() - 8) throw std::runtime_error("golden file: bytes left over");
  return file;
}

inline std::vector<uint8_t> read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": cannot be read");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace oct::golden
