// Text for standard error. fmt::print() throws where nobody reads it, and a complaint must not
// replace the exit code that it explains. Names and texts of the user's may hold anything: a
// complaint stays one line.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace octet::tool {

template <typename... Values>
void complain(fmt::format_string<Values...> text, Values&&... values) {
  std::string line = fmt::format(text, std::forward<Values>(values)...);
  // But for the last character, which ends it, and a first one that leaves a line of progress.
  for (std::size_t i = line.starts_with('\r') || line.starts_with('\n') ? 1 : 0;
       i + 1 < line.size(); ++i) {
    if (static_cast<unsigned char>(line[i]) < ' ' || line[i] == 0x7f) line[i] = '?';
  }
  std::fputs(line.c_str(), stderr);
}

}  // namespace octet::tool
