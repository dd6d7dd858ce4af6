// Files of tuned tables. They are written by output_file.h, whole or not at all.
#pragma once

#include <string>

#include "octet/octet.hpp"

namespace octet::tool {

// Throws, with a sentence, if there is something of that name and it is no regular file: a device
// or a pipe may never end.
void require_regular(const std::string& option, const std::string& path);

// Throws with a sentence that names the file; `option` is what the user gave it as.
TunedTable read_table(const std::string& option, const std::string& path);

// Says on stderr what of the table is not used for plans on the device, if anything.
void tell_unused(const TunedTable& table, const std::string& path, const DeviceSpec& device);

bool file_exists(const std::string& path);

// Throws, with a sentence, if no file can be put there, or an input is there: before hours of
// measuring, not after.
void require_writable(const std::string& option, const std::string& path);

// Says on standard error that a dry run leaves this file alone, if one was named.
void tell_unwritten(const std::string& option, const std::string& path);

}  // namespace octet::tool
