// See npy.h.
#include "npy.h"

#include <charconv>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

namespace octet::tool {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostDimensions = 64;  // NumPy's own limit

[[noreturn]] void bad(const std::string& what) { throw std::runtime_error(what); }

// Just the Python that headers are written in.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    const auto once = [](bool& seen, const std::string& key) {
      if (seen) bad(fmt::format("its header has {} twice", key));
      seen = true;
    };
    need('{');
    while (!take('}')) {
      const std::string key = string();
      need(':');
      if (key == "descr") {
        once(descr, key);
        if (peek() == '[') bad("holds records (a structured dtype): must be a plain array");
        header.descr = string();
      } else if (key == "fortran_order") {
        once(order, key);
        header.fortran_order = boolean();
      } else if (key == "shape") {
        once(shape, key);
        header.shape = tuple();
      } else {
        bad(fmt::format("its header has an entry \"{}\" that is not known", printable(key)));
      }
      if (!take(',') && peek() != '}') broken();
    }
    skip();
    if (at_ != text_.size()) broken();
    if (!descr || !order || !shape) bad("its header lacks descr, fortran_order or shape");
    return header;
  }

 private:
  [[noreturn]] void broken() const {
    bad(fmt::format("its header makes no sense at character {}", at_));
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) broken();
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') broken();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) broken();
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    skip();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    broken();
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    need('(');
    while (!take(')')) {
      int64_t value = 0;
      skip();
      const char* const last = text_.data() + text_.size();
      const auto [end, error] = std::from_chars(text_.data() + at_, last, value);
      if (error == std::errc::result_out_of_range || (error == std::errc{} && value < 0)) {
        const auto length = static_cast<std::size_t>(end - text_.data()) - at_;
        bad(fmt::format("has the extent {} in its shape: must be from 0 to {}",
                        printable(text_.substr(at_, length)), INT64_MAX));
      }
      if (error != std::errc{}) broken();
      at_ = static_cast<std::size_t>(end - text_.data());
      take('L');  // as Python 2 wrote it
      values.push_back(value);
      if (values.size() > kMostDimensions) {
        bad(fmt::format("has more than {0} dimensions: must have at most {0}", kMostDimensions));
      }
      if (!take(',') && peek() != ')') broken();
    }
    return values;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string dtype_of(const std::string& descr) {
  for (const char* one : {"|u1", "<u1", "|V1", "<V1"}) {
    if (descr == one) return "U8";
  }
  for (const char* two : {"<u2", "<V2", "|V2"}) {
    if (descr == two) return "U16";
  }
  if (descr == "<f2") return "F16";
  if (descr == "<f4") return "F32";
  const std::string shown = printable(descr);
  if (descr.find('O') != std::string::npos) {
    bad(fmt::format("holds Python objects (dtype \"{}\"): must hold numbers", shown));
  }
  if (!descr.empty() && descr[0] == '>') {
    bad(fmt::format(
        "is big-endian (dtype \"{}\"): save it after .astype(x.dtype.newbyteorder('<'))", shown));
  }
  bad(fmt::format("has dtype \"{}\": must be float32, float16, uint8 (e4m3) or uint16 (bfloat16)",
                  shown));
}

}  // namespace

NpyHeader parse_npy_header(std::string_view text) { return HeaderParser(text).parse(); }

Tensor parse_npy(const std::byte* data, int64_t signed_size) {
  const auto size = static_cast<uint64_t>(signed_size);
  const auto* text = reinterpret_cast<const char*>(data);
  if (size == 0) bad("is empty");
  if (!std::string_view(text, size).starts_with(kMagic)) bad("does not begin as a .npy file does");
  const auto byte = [&](uint64_t at) { return std::to_integer<uint32_t>(data[at]); };
  if (size < 12) bad("ends in the middle of its header");
  const uint32_t version = byte(6);
  if (version < 1 || version > 3) {
    bad(fmt::format("has version {}.{} of the format: must be 1, 2 or 3", version, byte(7)));
  }
  const uint64_t start = version == 1 ? 10 : 12;
  const uint64_t length = version == 1 ? byte(8) | byte(9) << 8
                                       : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > size - start) {
    bad(fmt::format("says its header has {} bytes: the file has {}", length, size - start));
  }
  const NpyHeader header = parse_npy_header({text + start, length});
  Tensor tensor;
  tensor.dtype = dtype_of(header.descr);
  tensor.shape = header.shape;
  if (header.fortran_order) bad("is in Fortran order: save numpy.ascontiguousarray() of it");
  int64_t bytes = dtype_bytes(tensor.dtype);
  for (const int64_t extent : header.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      bad(fmt::format("has shape {} of {}: must have fewer than 2^63 bytes",
                      shape_text(tensor.shape), header.descr));
    }
  }
  const auto there = static_cast<int64_t>(size - start - length);
  if (there != bytes) {
    bad(fmt::format("has {} bytes of elements: its shape {} needs {}", there,
                    shape_text(tensor.shape), bytes));
  }
  tensor.data = data + start + length;
  tensor.bytes = bytes;
  return tensor;
}

Npy::Npy(const std::string& path) : file_(path) {
  try {
    tensor_ = parse_npy(file_.data(), file_.size());
  } catch (const std::runtime_error& error) {
    file_.fail(error.what());
  }
}

std::string npy_preamble(octet_type type, const std::vector<int64_t>& shape) {
  const char* const descr = type == OCTET_F32    ? "<f4"
                            : type == OCTET_F16  ? "<f2"
                            : type == OCTET_BF16 ? "<u2"
                                                 : "|u1";
  std::string tuple;
  for (const int64_t extent : shape) tuple += fmt::format("{}, ", extent);
  if (shape.size() > 1) tuple.resize(tuple.size() - 2);
  if (shape.size() == 1) tuple.resize(tuple.size() - 1);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, tuple);
  constexpr std::size_t kBefore = 10, kUnit = 64;
  header.append(kUnit - 1 - (kBefore + header.size()) % kUnit, ' ');
  header += '\n';
  std::string out(kMagic);
  out += '\1';
  out += '\0';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header;
}

}  // namespace octet::tool
