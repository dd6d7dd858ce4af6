// See output_file.h.
#include "output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "inputs.h"
#include "interrupts.h"
#include "tensor.h"

namespace octet::tool {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// Short, whatever the final name is: names have a longest length. No two of a process are alike:
// one that is taken belongs to a process of the past, and is not ours to remove.
std::string temporary_in(const std::string& folder) {
  static std::atomic<int> count{0};
  return fmt::format("{}/.octet-{}-{}.tmp", folder, ::getpid(), count++);
}

// A rename is on the disk when its folder is. Some file systems cannot do this: then they need not.
void sync_folder(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return;
  ::fsync(file);
  ::close(file);
}

// An empty folder that no folder can be renamed to.
bool is_mount_point(const std::string& path) {
  struct statx info {};
  return ::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &info) == 0 &&
         (info.stx_attributes_mask & info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

constexpr int kMostAttempts = 10000;

}  // namespace

void OutputFile::fail(const char* doing, int error, const std::string& changed) const {
  throw CheckFailed(fmt::format("{}: cannot be {}: {}; {}", printable(path_), doing,
                                std::strerror(error),
                                changed.empty() ? "nothing of that name was changed" : changed));
}

OutputFile::OutputFile(const std::string& path) : path_(path), final_(path) {
  const auto refuse = [&](const std::string& what) {
    throw std::runtime_error(fmt::format("{}: {}", printable(path), what));
  };
  if (path.empty() || path.back() == '/') refuse("must be the name of a file to write");
  std::error_code error;
  if (fs::is_symlink(path, error)) {
    const fs::path target = fs::weakly_canonical(path, error);
    if (error) refuse(fmt::format("cannot be followed: {}", error.message()));
    final_ = target.string();
  }
  must_not_be_input(printable(path), final_);
  struct stat present {};
  const bool exists = ::stat(final_.c_str(), &present) == 0;
  if (!exists && errno == ENAMETOOLONG) {
    refuse(fmt::format("cannot be written: {}", std::strerror(ENAMETOOLONG)));
  }
  if (exists && !S_ISREG(present.st_mode)) {
    refuse("is there and is not a regular file, so no file can be renamed to it");
  }
  const std::string folder = folder_of(final_);
  for (int attempt = 0; file_ < 0; ++attempt) {
    temporary_ = temporary_in(folder);
    remove_when_ended(temporary_);
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ >= 0) break;
    const int code = errno;
    no_longer_remove({{temporary_}}, [] { return 0; });
    if (code != EEXIST || attempt == kMostAttempts) {
      refuse(fmt::format("cannot be written in {}: {}", printable(folder), std::strerror(code)));
    }
  }
  if (exists) static_cast<void>(::fchmod(file_, present.st_mode & 07777));
}

OutputFile::~OutputFile() {
  if (file_ >= 0) ::close(file_);
  if (!temporary_.empty()) {
    no_longer_remove({{temporary_}}, [&] { return ::unlink(temporary_.c_str()); });
  }
}

void OutputFile::write_at(int64_t offset, const void* data, int64_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::pwrite(file_, from, static_cast<std::size_t>(bytes), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail("written", count < 0 ? errno : ENOSPC);
    from += count;
    offset += count;
    bytes -= count;
  }
}

void OutputFile::finish() {
  if (::fsync(file_) != 0) fail("written", errno);
  const int file = file_;
  file_ = -1;
  if (::close(file) != 0) fail("written", errno);
}

int OutputFile::rename(bool keep_old) {
  struct stat present {};
  if (keep_old && ::lstat(final_.c_str(), &present) == 0) {
    // The two change places, and the old one is kept under the temporary name; where the file
    // system cannot do that, under one more name.
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE) == 0) {
      old_ = temporary_;
      renamed_ = true;
      return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) return errno;
    old_ = temporary_in(folder_of(final_));
    if (::link(final_.c_str(), old_.c_str()) != 0) return errno;
  }
  if (::rename(temporary_.c_str(), final_.c_str()) != 0) return errno;
  renamed_ = true;
  return 0;
}

bool OutputFile::rename_back() noexcept {
  const int result =
      old_.empty() ? ::unlink(final_.c_str()) : ::rename(old_.c_str(), final_.c_str());
  if (result == 0) old_.clear();
  return result == 0;
}

void OutputFile::commit(std::span<OutputFile* const> files) {
  for (OutputFile* file : files) file->finish();
  OutputFile* refused = nullptr;
  std::string changed;
  std::vector<std::string> names;
  for (OutputFile* file : files) names.push_back(file->temporary_);
  const int result = no_longer_remove(names, [&] {
    int error = 0;
    for (OutputFile* file : files) {
      error = file->rename(file != files.back());
      if (error == 0) continue;
      refused = file;
      break;
    }
    for (OutputFile* file : files) {
      if (refused != nullptr && file->renamed_ && !file->rename_back()) {
        changed += printable(file->path_) + " is new, and could not be put back";
        continue;  // what was there stays under its temporary name
      }
      if (!file->old_.empty()) ::unlink(file->old_.c_str());
      if (refused != nullptr) ::unlink(file->temporary_.c_str());
      file->temporary_.clear();
    }
    return error;
  });
  if (refused != nullptr) {
    if (files.size() > 1 && changed.empty()) changed = "no output was changed";
    refused->fail("renamed into place", result, changed);
  }
  for (OutputFile* file : files) sync_folder(folder_of(file->final_));
}

void OutputFile::commit() {
  OutputFile* const self = this;
  commit({&self, 1});
}

OutputFolder::OutputFolder(const std::string& final_path) : final_(final_path) {
  while (final_.size() > 1 && final_.back() == '/') final_.pop_back();
  const auto refuse = [&](const std::string& what) {
    throw std::runtime_error(fmt::format("{}: {}", printable(final_path), what));
  };
  if (final_.empty()) refuse("must be the name of a folder to write");
  must_not_be_input(printable(final_path), final_);
  std::error_code error;
  const fs::file_status present = fs::symlink_status(final_, error);
  if (error == std::errc::filename_too_long) {
    refuse(fmt::format("cannot be written: {}", error.message()));
  }
  if (fs::exists(present) && !(fs::is_directory(present) && fs::is_empty(final_, error))) {
    refuse("is there already: must be a new name, or an empty folder");
  }
  const std::string last = fs::path(final_).filename().string();
  if (last.empty() || last == "." || last == "..") refuse("must be the name of a folder to write");
  if (is_mount_point(final_)) {
    refuse("is a mount point, which cannot be replaced: give a new name inside it");
  }
  const std::string parent = folder_of(final_);
  for (int attempt = 0;; ++attempt) {
    temporary_ = temporary_in(parent);
    remove_when_ended(temporary_);
    if (::mkdir(temporary_.c_str(), 0777) == 0) return;
    const int code = errno;
    no_longer_remove({{temporary_}}, [] { return 0; });
    if (code == EEXIST && attempt < kMostAttempts) continue;
    refuse(fmt::format("cannot be written in {}: {}", printable(parent), std::strerror(code)));
  }
}

OutputFolder::~OutputFolder() {
  if (done_) return;
  no_longer_remove({{temporary_}}, [&] {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
    return 0;
  });
}

void OutputFolder::commit() {
  sync_folder(temporary_);
  const int result = no_longer_remove({{temporary_}}, [&] {
    return ::rename(temporary_.c_str(), final_.c_str()) == 0 ? 0 : errno;
  });
  if (result != 0) {
    throw CheckFailed(fmt::format("{}: cannot be renamed into place: {}", printable(final_),
                                  std::strerror(result)));
  }
  done_ = true;
  sync_folder(folder_of(final_));
}

}  // namespace octet::tool
