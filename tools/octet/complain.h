// Text for standard error. fmt::print() throws where nobody reads it, and a complaint must not
// replace the exit code that it explains.
#pragma once

#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace octet::tool {

template <typename... Values>
void complain(fmt::format_string<Values...> text, Values&&... values) {
  std::fputs(fmt::format(text, std::forward<Values>(values)...).c_str(), stderr);
}

}  // namespace octet::tool
