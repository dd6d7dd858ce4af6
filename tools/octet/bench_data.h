// Random Gaussian operands in device memory, fast: a few megabytes are drawn and quantised on the
// host once (docs/numerics.md, section 3) and uploaded; buffers of any size are then filled by
// copies on the device, each starting elsewhere in that pool.
//
// A matrix filled so has the codes and the scales of a quantised Gaussian one (every run of 128
// codes reaches 448), though not of one and the same: no result is looked at here.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "device_memory.h"
#include "octet/octet.hpp"

namespace octet::tool {

enum class Content {
  kCodes1x128,
  kCodes128x128,
  kScales1x128,
  kScales128x128,
  kBf16,
  kF16,
  kF32,
  kNothing  // outputs: not filled
};

// Elements of a type, for C, bias and BF16 operands.
Content values_of(octet_type type);

class BenchData {
 public:
  explicit BenchData(const DeviceStream& stream) : stream_(stream) {}
  // A new buffer, filled; the work is on the stream.
  DeviceBuffer make(Content content, std::int64_t bytes);
  DeviceBuffer copy_of(const std::vector<std::uint8_t>& bytes) const {
    return DeviceBuffer(bytes, stream_);
  }

 private:
  void draw(octet_block_values block, Content codes, Content scales);
  void draw_values(octet_type type, Content content);
  const DeviceBuffer& pool(Content content);

  const DeviceStream& stream_;
  std::map<Content, DeviceBuffer> pools_;
  std::int64_t copies_ = 0;
};

}  // namespace octet::tool
