// See samples_folder.h. The way from the command to the installed sample is relative, so that an
// installation may be moved; the build says what it is.
#include "samples_folder.h"

#include <filesystem>
#include <system_error>

namespace octet::tool {

std::string find_samples() {
  namespace fs = std::filesystem;
  const std::string here = "samples";
  std::error_code error;
  if (fs::exists(fs::path(here) / kSampleFile, error)) return here;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  if (error) return here;
  const fs::path installed = (command.parent_path() / OCTET_BIN_TO_SAMPLES).lexically_normal();
  return fs::exists(installed / kSampleFile, error) ? installed.string() : here;
}

}  // namespace octet::tool
