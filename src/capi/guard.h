// What every function of the C interface is wrapped in: a Status becomes a code and the thread's
// message, no exception leaves, and the caller's floating-point environment has no influence.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "core/fp_environment.h"
#include "core/refusals.h"
#include "core/status.h"

namespace oct::capi {

// A thread's last sentence. An array and no std::string: one with a destructor is registered on the
// thread's first failure, and a process that is out of memory then is ended by the C++ runtime.
constexpr std::size_t kMostMessage = 2048;
inline char (&message_buffer())[kMostMessage] {
  thread_local char message[kMostMessage] = {};
  return message;
}

inline std::string_view last_message() { return message_buffer(); }

// A sentence that is too long is cut behind a whole UTF-8 character, and says so.
inline void keep_message(std::string_view sentence) noexcept {
  constexpr std::string_view kCut = " ...";
  char(&kept)[kMostMessage] = message_buffer();
  std::size_t length = sentence.size();
  if (length >= kMostMessage) {
    length = kMostMessage - 1 - kCut.size();
    while (length > 0 && (static_cast<unsigned char>(sentence[length]) & 0xc0) == 0x80) --length;
  }
  char* const end = std::copy_n(sentence.data(), length, kept);
  *(length < sentence.size() ? std::copy(kCut.begin(), kCut.end(), end) : end) = 0;
}

inline octet_code tell(const Status& status) {
  if (!status.ok()) keep_message(status.message());
  return status.code();
}

// A sentence with values takes memory; without any, the rule's own is kept.
inline octet_code fail(core::Rule rule, const char* got) noexcept {
  keep_message(core::rule_text(rule).sentence);
  if (*got == 0) return core::rule_text(rule).code;
  try {
    keep_message(core::refuse(rule, {{"got", got}}).message());
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
