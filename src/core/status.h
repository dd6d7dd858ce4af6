// What every fallible function inside the library returns: a code and, when it failed, one sentence
// for the user. Success allocates nothing, so a Status may be returned on the path of a call.
#pragma once

#include <string>
#include <utility>

#include "octet/octet.h"

namespace oct {

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(octet_code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == OCTET_OK; }
  octet_code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  octet_code code_ = OCTET_OK;
  std::string message_;
};

}  // namespace oct
