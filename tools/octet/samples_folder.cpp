// See samples_folder.h. The way from the command to the installed sample is relative, so that an
// installation may be moved; the build says what it is.
#include "samples_folder.h"

#include <sys/auxv.h>

#include <filesystem>
#include <system_error>

namespace octet::tool {

std::string find_samples() {
  namespace fs = std::filesystem;
  const std::string here = "samples";
  std::error_code error;
  if (fs::exists(fs::path(here) / kSampleFile, error)) return here;
  fs::path command = fs::read_symlink("/proc/self/exe", error);
  if (error) {  // a root without /proc: the name it was started by, links resolved
    const auto* const name = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
    if (name != nullptr) command = fs::canonical(name, error);
    if (name == nullptr || error) return here;
  }
  const fs::path installed = (command.parent_path() / OCTET_BIN_TO_SAMPLES).lexically_normal();
  return fs::exists(installed / kSampleFile, error) ? installed.string() : here;
}

}  // namespace octet::tool
