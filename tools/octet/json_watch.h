// What the JSON library does not look at before it builds a document: how deep a text nests (its
// documents are copied, printed and destroyed by recursion, so that a small file of brackets would
// end the process), names that stand in an object twice (it keeps one and says nothing) and
// integers of more than 64 bits (it makes a float of them). Looked at by events, in one pass that
// builds nothing. (A callback of its parser sees the same, but then closing an object looks through
// all of its parent: a header of 200,000 tensors took minutes.)
#pragma once

#include <functional>
#include <string>

namespace octet::tool {

inline constexpr int kDeepestJson = 128;  // levels; models' own files have fewer than ten

// Called in the text's order.
struct JsonSeen {
  std::function<void(int level)> object;  // begins: the outermost (level 1), one in it (2), ...
  std::function<void(int level, const std::string& key)> key;
  std::function<void(const std::string& digits)> long_integer;
};

// Whether the text nests no deeper than that. What is no JSON passes: parsing says so.
bool json_is_shallow(const char* first, const char* last, const JsonSeen& seen);

// Of a text whose document is written again: why that would not hold what the text does, as a
// sentence behind the file's name; or empty.
std::string json_fault(const char* first, const char* last);

}  // namespace octet::tool
