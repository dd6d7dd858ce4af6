// What the targets share: values out of the fuzzer's bytes, buffers that end where they end, and a
// way to stop that names the promise which was broken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>

#include "octet/octet.h"

// Freed memory is kept from reuse for the length of many runs, which takes far less than by
// default, and stays in the processor's caches. ASAN_OPTIONS in the environment says otherwise
// where more of a stack is wanted.
extern "C" [[gnu::used]] inline const char* __asan_default_options() {
  return "quarantine_size_mb=8:malloc_context_size=8";
}

namespace octet_fuzz {

// Stops the fuzzer, which keeps the input.
inline void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "BROKEN: %s; the last message is \"%s\"\n", what, octet_status_message());
  std::abort();
}

// A refusal is one finished sentence. `quoted` is text of the caller's that it may repeat.
inline void promise_sentence(const std::string& quoted = {}) {
  const std::string message = octet_status_message();
  promise(!message.empty(), "a refusal has a sentence");
  for (const char c : message) {
    promise(static_cast<unsigned char>(c) >= ' ' && c != 0x7f, "a sentence is one line");
  }
  promise(message.find('{') == std::string::npos || quoted.find('{') != std::string::npos,
          "a sentence has no open place left");
}

// Reads values from the front; zeros once the bytes are used up.
class Input {
 public:
  Input(const uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    fill(&value, sizeof value);
    return value;
  }
  void fill(void* to, std::size_t size) {
    const std::size_t length = size < left_ ? size : left_;
    if (length > 0) std::memcpy(to, data_, length);
    data_ += length;
    left_ -= length;
  }
  // One byte of input, or two where one cannot reach every value.
  int64_t between(int64_t low, int64_t high) {
    const int64_t count = high - low + 1;
    return low + (count > 256 ? int64_t{take<uint16_t>()} : int64_t{take<uint8_t>()}) % count;
  }
  bool one_in(int n) { return between(1, n) == n; }
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[between(0, static_cast<int64_t>(values.size()) - 1)];
  }
  // Near zero, near a limit, or anything.
  int64_t wild() {
    switch (between(0, 5)) {
      case 0: return int64_t{take<int8_t>()};
      case 1: return int64_t{take<int32_t>()};
      case 2: return (int64_t{1} << between(0, 62)) + take<int8_t>();
      case 3: return -(int64_t{1} << between(0, 62)) + take<int8_t>();
      case 4: return INT32_MAX - int64_t{take<int8_t>()};
      default: return take<int64_t>();
    }
  }
  std::size_t left() const { return left_; }

 private:
  const uint8_t* data_;
  std::size_t left_;
};

// Heap memory of exactly so many bytes, so that the address sanitizer sees the first one beyond.
class Buffer {
 public:
  explicit Buffer(int64_t size)
      : size_(static_cast<std::size_t>(size)), bytes_(new uint8_t[static_cast<std::size_t>(size)]) {
    std::memset(bytes_.get(), 0, size_);
  }
  Buffer(const Buffer& other) : Buffer(static_cast<int64_t>(other.size_)) {
    if (size_ > 0) std::memcpy(bytes_.get(), other.bytes_.get(), size_);
  }
  Buffer& operator=(const Buffer&) = delete;

  // Some of the fuzzer's bytes, repeated and changed along the way.
  void scatter(Input& input) {
    uint8_t seed[16];
    input.fill(seed, sizeof seed);
    uint32_t state = 1;
    uint8_t* const bytes = bytes_.get();
    for (std::size_t i = 0; i < size_; ++i) {
      state = state * 1664525u + 1013904223u;
      bytes[i] = static_cast<uint8_t>(seed[i % sizeof seed] ^ (seed[15] & (state >> 24)));
    }
  }

  uint8_t* data() { return bytes_.get(); }
  const uint8_t* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }
  bool operator==(const Buffer& other) const {
    return size_ == other.size_ && (size_ == 0 || std::memcmp(data(), other.data(), size_) == 0);
  }

 private:
  std::size_t size_;
  std::unique_ptr<uint8_t[]> bytes_;
};

// A problem that mostly keeps the rules; sizes are the caller's.
inline octet_gemm_problem take_problem(Input& input) {
  octet_gemm_problem p;
  octet_gemm_problem_init(&p);
  p.grouping = static_cast<octet_grouping>(input.between(0, 6));
  if (input.one_in(3)) p.in_type = OCTET_BF16;
  p.d_type = input.pick<octet_type>({OCTET_F32, OCTET_BF16, OCTET_F16});
  if (p.grouping != OCTET_K_GROUPED) {
    p.bias_type = input.pick<octet_type>({OCTET_NONE, OCTET_F32, OCTET_BF16, OCTET_F16});
  }
  p.accumulate = input.one_in(2);
  const bool fine = p.grouping == OCTET_K_GROUPED || input.one_in(3);
  p.granularity = p.in_type == OCTET_BF16 ? OCTET_SCALE_NONE : fine ? OCTET_1D1D : OCTET_1D2D;
  p.sfa_layout = static_cast<octet_scale_layout>(input.between(0, 2));
  p.sfb_layout = static_cast<octet_scale_layout>(input.between(0, 2));
  if (p.grouping == OCTET_OFFSETS || p.grouping == OCTET_K_GROUPED) {
    p.index_type = input.pick<octet_type>({OCTET_I32, OCTET_I64});
  }
  if (p.grouping == OCTET_K_GROUPED) p.packed = input.one_in(2);
  if (p.grouping == OCTET_CONTIGUOUS) {
    p.zero_padding = input.one_in(2);
    p.alignment = 64 * input.between(1, 3);
  }
  if (p.grouping == OCTET_ALIGNED) p.alignment = input.between(1, 140);
  p.split = static_cast<int32_t>(input.between(0, 4));
  p.batch_invariant = input.one_in(4);
  return p;
}

inline octet_gemm_plan take_plan(const octet_gemm_problem& problem, bool& made) {
  octet_device_spec device;
  octet_gemm_plan plan{};
  promise(octet_device_preset("cpu", &device) == OCTET_OK, "the preset cpu is there");
  made = octet_plan_gemm(&problem, &device, &plan) == OCTET_OK;
  if (!made) promise_sentence();
  return plan;
}

// Prints into a buffer of exactly the right size, reads back, and compares.
inline void promise_problem_round_trip(const octet_gemm_problem& problem) {
  char text[OCTET_TEXT_CAPACITY];
  promise(octet_gemm_problem_print(&problem, text, sizeof text) == OCTET_OK, "a problem prints");
  octet_gemm_problem again{};
  promise(octet_gemm_problem_parse(text, &again) == OCTET_OK, "a printed problem parses");
  promise(octet_gemm_problem_equal(&problem, &again) == 1, "a printed problem is the same problem");
  promise(octet_gemm_problem_hash(&problem) == octet_gemm_problem_hash(&again), "equal hashes");
  const std::size_t room = std::strlen(text) + 1;
  Buffer exact(static_cast<int64_t>(room));
  char* const to = reinterpret_cast<char*>(exact.data());
  promise(octet_gemm_problem_print(&again, to, room) == OCTET_OK, "exact room is enough");
  promise(std::strcmp(to, text) == 0, "one problem has one string");
  promise(octet_gemm_problem_print(&again, to, room - 1) != OCTET_OK, "one byte less is not");
}

inline void promise_plan_round_trip(const octet_gemm_plan& plan) {
  char text[OCTET_TEXT_CAPACITY];
  promise(octet_gemm_plan_print(&plan, text, sizeof text) == OCTET_OK, "a plan prints");
  octet_gemm_plan again{};
  promise(octet_gemm_plan_parse(text, &again) == OCTET_OK, "a printed plan parses");
  promise(octet_gemm_plan_equal(&plan, &again) == 1, "a printed plan is the same plan");
  const std::size_t room = std::strlen(text) + 1;
  Buffer exact(static_cast<int64_t>(room));
  char* const to = reinterpret_cast<char*>(exact.data());
  promise(octet_gemm_plan_print(&again, to, room) == OCTET_OK, "exact room is enough");
  promise(std::strcmp(to, text) == 0, "one plan has one string");
  promise(octet_gemm_plan_print(&again, to, room - 1) != OCTET_OK, "one byte less is not");
}

}  // namespace octet_fuzz
