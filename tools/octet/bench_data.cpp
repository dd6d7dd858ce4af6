// See bench_data.h.
#include "bench_data.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "bench_cuda.h"

namespace octet::tool {
namespace {

constexpr std::int64_t kPoolRows = 2048, kPoolCols = 4096;

// Standard normal numbers (Box and Muller) from a counter: the same on every run.
std::vector<float> gaussian(std::int64_t count, std::uint64_t seed) {
  std::vector<float> out(static_cast<std::size_t>(count));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  const auto uniform = [&state] {  // in (0, 1]
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t x = state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return static_cast<float>(((x ^ (x >> 31)) >> 40) + 1) * 0x1p-24f;
  };
  for (std::size_t i = 0; i + 1 < out.size(); i += 2) {
    const float radius = std::sqrt(-2 * std::log(uniform()));
    const float angle = 2 * std::numbers::pi_v<float> * uniform();
    out[i] = radius * std::cos(angle);
    out[i + 1] = radius * std::sin(angle);
  }
  return out;
}

}  // namespace

Content values_of(octet_type type) {
  switch (type) {
    case OCTET_BF16: return Content::kBf16;
    case OCTET_F16: return Content::kF16;
    default: return Content::kF32;
  }
}

void BenchData::draw(octet_block_values block, Content codes, Content scales) {
  const bool rows = block == OCTET_BLOCK_1X128;
  std::vector<float> x = gaussian(kPoolRows * kPoolCols, rows ? 1 : 2);
  std::vector<std::uint8_t> code(x.size());
  const std::int64_t scale_rows = rows ? kPoolRows : kPoolRows / 128;
  std::vector<float> scale(static_cast<std::size_t>(scale_rows * k_blocks(kPoolCols)));
  QuantizeArgs q;
  q.block = block;
  q.x = matrix(x.data(), kPoolRows, kPoolCols);
  q.codes = matrix(code.data(), kPoolRows, kPoolCols);
  q.scales = scale.data();
  q.row_stride = k_blocks(kPoolCols);
  q.k_stride = 1;
  cpu::quantize(q).value();
  // Scales of 128x128 blocks are few: repeated, so that one copy fills a good deal.
  const std::vector<float> once = scale;
  while (scale.size() < (std::size_t{1} << 16)) scale.insert(scale.end(), once.begin(), once.end());
  pools_[codes] = DeviceBuffer(code, stream_);
  pools_[scales] = DeviceBuffer(scale, stream_);
}

void BenchData::draw_values(octet_type type, Content content) {
  std::vector<float> x = gaussian(kPoolRows * kPoolCols / 4, 3);
  if (type == OCTET_F32) {
    pools_[content] = DeviceBuffer(x, stream_);
    return;
  }
  // Rounded to 16 bits by way of codes and back: the library's own conversion.
  const std::int64_t rows = kPoolRows / 4;
  std::vector<std::uint8_t> code(x.size());
  std::vector<float> scale(static_cast<std::size_t>(rows * k_blocks(kPoolCols)));
  std::vector<std::uint16_t> values(x.size());
  QuantizeArgs q;
  q.x = matrix(x.data(), rows, kPoolCols);
  q.codes = matrix(code.data(), rows, kPoolCols);
  q.scales = scale.data();
  q.row_stride = k_blocks(kPoolCols);
  q.k_stride = 1;
  cpu::quantize(q).value();
  q.x_type = type;
  q.x = matrix(values.data(), rows, kPoolCols);
  cpu::dequantize(q).value();
  pools_[content] = DeviceBuffer(values, stream_);
}

const DeviceBuffer& BenchData::pool(Content content) {
  if (!pools_.contains(content)) {
    switch (content) {
      case Content::kCodes1x128:
      case Content::kScales1x128:
        draw(OCTET_BLOCK_1X128, Content::kCodes1x128, Content::kScales1x128);
        break;
      case Content::kCodes128x128:
      case Content::kScales128x128:
        draw(OCTET_BLOCK_128X128, Content::kCodes128x128, Content::kScales128x128);
        break;
      case Content::kBf16: draw_values(OCTET_BF16, content); break;
      case Content::kF16: draw_values(OCTET_F16, content); break;
      default: draw_values(OCTET_F32, content); break;
    }
  }
  return pools_[content];
}

DeviceBuffer BenchData::make(Content content, std::int64_t bytes) {
  DeviceBuffer buffer(static_cast<std::size_t>(bytes));
  if (content == Content::kNothing || bytes == 0) return buffer;
  const DeviceBuffer& from = pool(content);
  const auto size = static_cast<std::int64_t>(from.bytes());
  for (std::int64_t done = 0; done < bytes;) {
    // Starts lie 128 codes (or 32 scales) apart and do not repeat soon.
    const std::int64_t start = copies_++ * 2654435 * 128 % size;
    const std::int64_t part = std::min(bytes - done, size - start);
    cuda_ok(cudaMemcpyAsync(static_cast<char*>(buffer.data()) + done,
                            static_cast<const char*>(from.data()) + start,
                            static_cast<std::size_t>(part), cudaMemcpyDeviceToDevice,
                            static_cast<cudaStream_t>(stream_.get())),
            "filling operands");
    done += part;
  }
  return buffer;
}

}  // namespace octet::tool
