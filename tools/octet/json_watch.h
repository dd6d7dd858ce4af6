// What the JSON library does not look at before it builds a document: how deep a text nests (its
// documents are copied, printed and destroyed by recursion, so that a small file of brackets would
// end the process), and names that stand in an object twice (it keeps the last and says nothing).
// Looked at by events, in one pass that builds nothing. (A callback of its parser sees the same,
// but then closing an object looks through all of its parent: a header of 200,000 tensors took
// minutes.)
#pragma once

#include <functional>
#include <string>

namespace octet::tool {

inline constexpr int kDeepestJson = 128;  // levels; models' own files have fewer than ten

// Keys of the outermost object (level 1), of objects in it (2) and so on. Called in the text's
// order.
using SeenKey = std::function<void(int level, const std::string& key)>;
using SeenObject = std::function<void(int level)>;  // an object of that level begins

// Whether the text nests no deeper than that. What is no JSON passes: parsing says so.
bool json_is_shallow(const char* first, const char* last, const SeenObject& object = {},
                     const SeenKey& key = {});

}  // namespace octet::tool
