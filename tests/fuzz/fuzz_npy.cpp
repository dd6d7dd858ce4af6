// The .npy reader: any bytes are an array that lies inside them, or are refused in one sentence.
// What was read, written again with a header of our own, is the same array.
#include "files_promises.h"
#include "npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace octet_fuzz;
  using namespace octet::tool;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  Tensor tensor;
  if (!read_or_refused([&] { tensor = parse_npy(bytes, static_cast<int64_t>(size)); })) return 0;
  promise_inside(tensor, bytes, size);

  const octet_type type = tensor.dtype == "U8"    ? OCTET_E4M3
                          : tensor.dtype == "U16" ? OCTET_BF16
                                                  : dtype_to_octet(tensor.dtype);
  promise(type != OCTET_NONE, "an array has one of four types");
  std::string again = npy_preamble(type, tensor.shape);
  promise(again.size() % 64 == 0, "elements begin at a multiple of 64 bytes");
  again.append(reinterpret_cast<const char*>(tensor.data), static_cast<std::size_t>(tensor.bytes));
  const Tensor same = parse_npy(reinterpret_cast<const std::byte*>(again.data()),
                                static_cast<int64_t>(again.size()));
  promise(same.dtype == tensor.dtype && same.shape == tensor.shape && same.bytes == tensor.bytes,
          "what was written is read as what it is");
  return 0;
}
