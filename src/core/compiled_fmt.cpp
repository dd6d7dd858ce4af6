// {fmt}'s functions, compiled once for the whole build and linked into the library and the command.
// As headers alone they are compiled again in every file that formats a sentence, which took more
// than half of the time of a build; its shared library would be one that Octet needs at run time.
// Only for the versions of {fmt} that src/CMakeLists.txt names: these are its internal names.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl<char>(locale_ref) -> char;
}  // namespace detail
FMT_END_NAMESPACE
