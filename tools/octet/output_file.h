// Files the command writes: to a temporary name in the folder they are for, and when all of it is
// on the disk, renamed. Whatever happens before that - a full disk, Ctrl-C, kill -9 - what stood
// under the final name stays as it was.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace octet::tool {

class OutputFile {
 public:
  // Throws std::runtime_error with one sentence if there can be no such file; CheckFailed, here and
  // below, if it cannot be written. A link is followed; what is no regular file is not replaced.
  explicit OutputFile(const std::string& path);
  ~OutputFile();  // removes what was not committed
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  // Any order; what is never written is zeros.
  void write_at(int64_t offset, const void* data, int64_t bytes);
  // Afterwards all of them are there under their final names, or, where one is refused its name,
  // what was there before. Signals wait meanwhile; kill -9 between two renames is what remains.
  static void commit(std::span<OutputFile* const> files);
  void commit();

 private:
  [[noreturn]] void fail(const char* doing, int error, const std::string& changed = "") const;
  void finish();                // all bytes are on the disk
  int rename(bool keep_old);    // an errno
  bool rename_back() noexcept;  // to what was there before rename(true); whether that went well

  std::string path_;  // as the user wrote it
  std::string final_, temporary_;
  std::string old_;       // where what was there before is kept; empty: there was nothing
  bool renamed_ = false;  // what is under the final name is ours
  int file_ = -1;
};

// The same for a folder: files are written into path(), and it is renamed when all are there.
class OutputFolder {
 public:
  // Throws if there is something of that name, unless it is an empty folder.
  explicit OutputFolder(const std::string& final_path);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::string& path() const { return temporary_; }
  void commit();

 private:
  std::string final_, temporary_;
  bool done_ = false;
};

}  // namespace octet::tool
