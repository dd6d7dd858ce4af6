// See mapped_file.h.
#include "mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "inputs.h"
#include "interrupts.h"
#include "tensor.h"

namespace octet::tool {

void MappedFile::fail(const std::string& what) const {
  throw std::runtime_error(fmt::format("{}: {}", printable(path_), what));
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // A FIFO would let open() wait for a writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) fail(fmt::format("cannot be opened: {}", std::strerror(errno)));
  note_input(path);
  struct stat info {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(file);
    fail("is not a regular file");
  }
  size_ = info.st_size;
  if (size_ > 0) {
    void* mapped =
        ::mmap(nullptr, static_cast<std::size_t>(size_), PROT_READ, MAP_PRIVATE, file, 0);
    const int error = errno;
    if (mapped == MAP_FAILED) {
      ::close(file);
      fail(fmt::format("cannot be mapped: {}", std::strerror(error)));
    }
    data_ = static_cast<const std::byte*>(mapped);
    watch_mapping(data_, size_, path_.c_str());
  }
  ::close(file);
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget_mapping(data_);
  ::munmap(const_cast<std::byte*>(data_), static_cast<std::size_t>(size_));
}

}  // namespace octet::tool
