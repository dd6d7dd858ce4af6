// See table_file.h.
#include "table_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "complain.h"
#include "inputs.h"

namespace octet::tool {

namespace fs = std::filesystem;

void require_regular(const std::string& option, const std::string& path) {
  std::error_code error;
  const fs::file_status present = fs::status(path, error);
  // A folder cannot be read, which is said then.
  if (!fs::exists(present) || fs::is_regular_file(present) || fs::is_directory(present)) return;
  throw std::runtime_error(option + " " + path + ": is not a regular file");
}

TunedTable read_table(const std::string& option, const std::string& path) {
  require_regular(option, path);
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  if (!in.is_open() || in.bad() || text.bad()) {
    throw std::runtime_error(option + " " + path + ": cannot be read");
  }
  auto table = TunedTable::parse(text.str());
  if (!table.ok()) throw std::runtime_error(option + " " + path + ": " + table.message());
  return std::move(table).value();
}

void tell_unused(const TunedTable& table, const std::string& path, const DeviceSpec& device) {
  const Status s = table.check(device);
  if (!s.ok()) complain("octet: {}: {}\n", path, s.message());
}

bool file_exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

void require_writable(const std::string& option, const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw std::runtime_error(fmt::format("{} {}: is a folder: must be a file", option, path));
  }
  must_not_be_input(option + " " + path, path);
  const fs::path folder = fs::path(path).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0) return;
  throw std::runtime_error(
      fmt::format("{} {}: cannot be written ({})", option, path, std::strerror(errno)));
}

void tell_unwritten(const std::string& option, const std::string& path) {
  if (path.empty()) return;
  complain("octet: --dry-run writes nothing: {} {} is left alone\n", option, path);
}

}  // namespace octet::tool
