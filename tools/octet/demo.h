// `octet demo`: the main job on a real trained layer, as a table a newcomer understands.
#pragma once

#include <string>

namespace octet::tool {

// Throws std::runtime_error with one sentence on a bad sample.
int run_demo(const std::string& samples_folder, bool json);

}  // namespace octet::tool
