// Whether a sanitizer slows this build by an order of magnitude. Tests keep their cases there and
// cut their size: sanitizers look at addresses and threads, which a smaller problem shows as well.
#pragma once

namespace oct::testing_support {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace oct::testing_support
