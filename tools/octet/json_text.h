// Reports as text. Names of files come from the command line and may be any bytes, while JSON is
// UTF-8: what is not becomes U+FFFD, so that no name keeps a report from being printed.
#pragma once

#include <string>

namespace octet::tool {

template <typename Json>
std::string json_text(const Json& report) {
  return report.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octet::tool
