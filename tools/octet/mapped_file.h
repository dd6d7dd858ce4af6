// A file of the user's, mapped: memory stays bounded whatever its size. A file that somebody cuts
// while it is read ends the command with a sentence and exit code 2, not with a bus error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace octet::tool {

class MappedFile {
 public:
  // Throws std::runtime_error with one sentence that names the file, if it is no regular file or
  // cannot be read. A file of 0 bytes is fine and has no data.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  const std::byte* data() const { return data_; }
  int64_t size() const { return size_; }
  // Throws "PATH: what".
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace octet::tool
