// The .safetensors reader: any bytes are tensors that lie inside them, share no byte and leave
// none, or are refused in one sentence.
#include <cstring>

#include "files_promises.h"
#include "safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace octet_fuzz;
  using namespace octet::tool;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  SafetensorsContent content;
  if (!read_or_refused([&] { content = parse_safetensors(bytes, static_cast<int64_t>(size)); })) {
    return 0;
  }
  promise(content.tensors.count("__metadata__") == 0, "metadata is no tensor");
  int64_t all = 0;
  for (const auto& [name, tensor] : content.tensors) {
    promise_inside(tensor, bytes, size);
    all += tensor.bytes;
    for (const auto& [other_name, other] : content.tensors) {
      promise(&other == &tensor || tensor.bytes == 0 || other.bytes == 0 ||
                  tensor.data + tensor.bytes <= other.data ||
                  other.data + other.bytes <= tensor.data,
              "no two tensors share a byte");
    }
    // What messages say of it is one line.
    promise_one_line(printable(name) + shape_text(tensor.shape));
  }
  uint64_t header = 0;
  std::memcpy(&header, data, sizeof header);
  promise(static_cast<uint64_t>(all) + header + sizeof header == size,
          "every byte is some tensor's");
  return 0;
}
