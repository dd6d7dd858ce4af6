// See scale_source.h.
#include "scale_source.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

namespace octet::tool {
namespace {

// The number that `given` is, or nothing where it is none. Throws where FP32 does not hold it.
std::optional<float> parse_scale(const std::string& given, const std::string& option) {
  const bool plus = given.size() > 1 && given[0] == '+' && given[1] != '-';
  const char* const last = given.data() + given.size();
  float number = 0;
  const auto [end, error] = std::from_chars(given.data() + (plus ? 1 : 0), last, number);
  if (end != last || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc{}) {
    if (std::isfinite(number)) return number;
    throw std::runtime_error(fmt::format("{} {}: must be finite, as a scale is", option, given));
  }
  using Limits = std::numeric_limits<float>;
  throw std::runtime_error(
      std::fabs(std::strtod(given.c_str(), nullptr)) > 1
          ? fmt::format("{} {}: must be at most {} in magnitude, the largest number of FP32",
                        option, given, Limits::max())
          : fmt::format("{} {}: must be 0 or at least {:.2g} in magnitude, the smallest number of "
                        "FP32",
                        option, given, Limits::denorm_min()));
}

}  // namespace

std::string default_scales_file(const std::string& codes) {
  return codes.substr(0, codes.size() - std::string_view(".npy").size()) + "_scale_inv.npy";
}

ScaleSource::ScaleSource(TensorStore& codes, const std::string& name, const std::string& given,
                         const std::string& option) {
  known_ = parse_known(codes.metadata(name, quantization_key(name)));
  if (!given.empty()) {
    if (const auto number = parse_scale(given, option)) {
      number_ = *number;
      one_ = {"F32", {}, reinterpret_cast<const std::byte*>(&number_), sizeof number_};
      tensor_ = &one_;
      label_ = option + " " + given;
    } else {
      try {
        open(given);
      } catch (const std::runtime_error& error_of_file) {
        throw std::runtime_error(
            fmt::format("{} {} (nor is it a decimal number)", option, error_of_file.what()));
      }
    }
    return;
  }
  if (codes.holds_one_array()) {
    const std::string file = default_scales_file(codes.path());
    std::error_code error;
    if (std::filesystem::exists(file, error)) {
      open(file);
      return;
    }
    throw std::runtime_error(fmt::format(
        "{}: holds codes, and there is no {}: give their scales as {} FILE (or a number)",
        octet::tool::label(codes, name), printable(file), option));
  }
  for (const char* suffix : {"_scale_inv", "_scale"}) {
    tensor_ = codes.find(name + suffix);
    if (tensor_ == nullptr) continue;
    label_ = octet::tool::label(codes, name + suffix);
    return;
  }
  throw std::runtime_error(fmt::format(
      "{}: holds codes, and there is no tensor {}_scale_inv or {}_scale: give their scales as {} "
      "FILE[:TENSOR] (or a number)",
      octet::tool::label(codes, name), printable(name), printable(name), option));
}

void ScaleSource::open(const std::string& reference) {
  const TensorReference parts = parse_reference(reference);
  store_ = std::make_unique<TensorStore>(parts.path);
  std::string name = parts.tensor;
  tensor_ = &store_->choose(name);
  label_ = octet::tool::label(*store_, name);
}

octet_type element_type(const Tensor& tensor, const std::string& dtype, const std::string& label,
                        const std::string& option) {
  const octet_type type = dtype_to_octet(tensor.dtype);
  if (type == OCTET_E4M3 || type == OCTET_BF16 || type == OCTET_F16 || type == OCTET_F32) {
    return type;
  }
  if (tensor.dtype == "U8" && dtype == "e4m3") return OCTET_E4M3;
  if (tensor.dtype == "U16" && dtype == "bf16") return OCTET_BF16;
  if (tensor.dtype == "U8" || tensor.dtype == "U16") {
    const bool one = tensor.dtype == "U8";
    throw std::runtime_error(
        fmt::format("{}: holds {} integers{}: give {} {} if they are {}", label,
                    one ? "8-bit" : "16-bit",
                    dtype.empty() ? "" : fmt::format(", which {} {} does not fit", option, dtype),
                    option, one ? "e4m3" : "bf16", one ? "codes" : "BF16 bits"));
  }
  throw std::runtime_error(fmt::format("{}: holds {}: must be F32, BF16, F16 or F8_E4M3", label,
                                       printable(tensor.dtype)));
}

}  // namespace octet::tool
