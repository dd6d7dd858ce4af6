// Where the demo's sample lies: `samples` in the working directory, as in the repository, or what
// was installed with the command.
#pragma once

#include <string>

namespace octet::tool {

constexpr const char* kSampleFile = "minilm_ffn.safetensors";

// The first folder that holds the sample; `samples` if none does.
std::string find_samples();

}  // namespace octet::tool
