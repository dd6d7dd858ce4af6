// What ends the command from outside, and what must be put in order then.
//
// Ctrl-C, a plain kill or a closed terminal: names registered here are removed before the process
// ends by that very signal. This is done in a thread that waits for the signals, where anything may
// be called, and not in a handler, where hardly anything may. (kill -9 leaves temporary names
// behind, which is all it leaves; so does any end where the system refuses that thread.)
//
// A mapped file that is cut by somebody else while it is read: the processor's complaint becomes a
// sentence and exit code 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace octet::tool {

// A file, or a folder with all that is in it. Call it before other threads are started: they
// inherit that the signals are left to the waiting thread.
void remove_when_ended(const std::string& path);
// The names are gone or are to stay. `change` (renames, an unlink) and the forgetting are one step
// for a signal, which waits until all of it is done; what it returns is returned.
int no_longer_remove(const std::vector<std::string>& paths, const std::function<int()>& change);
// Removes all of them now, for whoever ends the process without unwinding.
void remove_unfinished();

// `path` must live until the mapping is forgotten.
void watch_mapping(const std::byte* data, int64_t size, const char* path);
void forget_mapping(const std::byte* data);

}  // namespace octet::tool
