// What a command reads is never what it writes: `octet gemm x.npy w.npy -o w.npy` would lose a file
// that nobody has a second time. Whatever opens an input notes it here, whatever creates an output
// asks here first, so no command can forget to.
#pragma once

#include <string>

namespace octet::tool {

// From now on nothing is written over this file or folder, by whatever name.
void note_input(const std::string& path);

// Throws std::runtime_error with one sentence that begins with `label` if `path` is an input: by
// the same name, another spelling, or a link to it. What is no file and no folder (/dev/null, a
// terminal) may be both.
void must_not_be_input(const std::string& label, const std::string& path);

// Whether both names are, or would be, one file.
bool same_file(const std::string& a, const std::string& b);

}  // namespace octet::tool
