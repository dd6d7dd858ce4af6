// What every function of the C interface is wrapped in: a Status becomes a code and the thread's
// message, no exception leaves, and the caller's floating-point environment has no influence.
#pragma once

#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "core/fp_environment.h"
#include "core/refusals.h"
#include "core/status.h"

namespace oct::capi {

inline std::string& last_message() {
  thread_local std::string message;
  return message;
}

inline octet_code tell(const Status& status) {
  if (!status.ok()) last_message() = status.message();
  return status.code();
}

// A message that itself cannot be kept is left out; the code says enough.
inline octet_code fail(core::Rule rule, const char* got) noexcept {
  try {
    last_message() = core::rule_text(rule).sentence;  // where memory is short this fits, no more
    if (*got != 0) last_message() = core::refuse(rule, {{"got", got}}).message();
  } catch (...) {
  }
  return core::rule_text(rule).code;
}

// Runs `body`, which returns a Status and touches no floating-point number: on the path of a
// launch.
template <typename Body>
octet_code guarded_launch(Body body) noexcept {
  try {
    return tell(body());
  } catch (const std::bad_alloc&) {
    return fail(core::Rule::kOutOfMemory, "");
  } catch (const std::exception& e) {
    return fail(core::Rule::kInternal, e.what());
  } catch (...) {
    return fail(core::Rule::kInternal, "unknown exception");
  }
}

// Runs `body`, which returns a Status. A caller's rounding mode must not change what it says, and a
// signalling NaN among the arguments must not trap, whatever the caller has unmasked.
template <typename Body>
octet_code guarded(Body body) noexcept {
  const core::FpEnvironment environment;
  return guarded_launch(body);
}

inline Status null(const char* arg, const char* want) {
  return core::refuse(core::Rule::kNull, {{"arg", arg}, {"want", want}});
}

// Text for the caller's buffer; never cut.
inline Status copy_text(const std::string& from, char* text, std::size_t capacity) {
  if (text == nullptr) return null("text", "a buffer for the text");
  if (capacity < from.size() + 1) {
    return core::refuse(core::Rule::kTextCapacity, {{"got", std::to_string(capacity)},
                                                    {"want", std::to_string(from.size() + 1)}});
  }
  std::memcpy(text, from.c_str(), from.size() + 1);
  return {};
}

}  // namespace oct::capi
