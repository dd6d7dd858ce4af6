// See inputs.h.
#include "inputs.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace octet::tool {
namespace {

namespace fs = std::filesystem;

std::mutex mutex;
// Never destroyed: threads may outlive statics.
std::vector<std::string>& inputs() {
  static auto* const all = new std::vector<std::string>;
  return *all;
}

// Control characters would make more than one line of the sentence.
std::string on_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text;
}

}  // namespace

void note_input(const std::string& path) {
  const std::lock_guard lock(mutex);
  if (std::find(inputs().begin(), inputs().end(), path) == inputs().end()) {
    inputs().push_back(path);
  }
}

void must_not_be_input(const std::string& label, const std::string& path) {
  std::error_code error;
  const fs::file_status present = fs::status(path, error);
  if (!fs::is_regular_file(present) && !fs::is_directory(present)) return;
  const std::lock_guard lock(mutex);
  for (const std::string& input : inputs()) {
    if (!fs::equivalent(path, input, error) || error) continue;
    throw std::runtime_error(label + ": is an input of the same command" +
                             (input == path ? std::string() : " (" + on_one_line(input) + ")") +
                             ": must be another file, as inputs are never overwritten");
  }
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  // A path that cannot be looked up has no canonical form; it is refused by whoever creates it.
  const fs::path first = fs::weakly_canonical(fs::absolute(a, error), error);
  const fs::path second = fs::weakly_canonical(fs::absolute(b, error), error);
  return first.empty() || second.empty() ? a == b : first == second;
}

}  // namespace octet::tool
