// Names of the interface's enumerations, used by the problem string and by every sentence.
#pragma once

#include <cstdint>
#include <string>

#include "octet/octet.h"

namespace oct::core {

const char* type_name(octet_type type);          // "e4m3", "bf16", ...; "unknown" outside
std::string type_text(octet_type type);          // the name, or the number where there is none
const char* grouping_name(octet_grouping kind);  // "dense", "batched", ...
const char* granularity_name(octet_scale_granularity granularity);  // "none", "1d2d", "1d1d"
const char* scale_layout_name(octet_scale_layout layout);

constexpr bool is_m_grouped(octet_grouping kind) {
  return kind == OCTET_CONTIGUOUS || kind == OCTET_OFFSETS || kind == OCTET_ALIGNED ||
         kind == OCTET_MASKED;
}
// M-grouped with the rows of all groups in one matrix.
constexpr bool shares_rows(octet_grouping kind) {
  return kind == OCTET_CONTIGUOUS || kind == OCTET_OFFSETS || kind == OCTET_ALIGNED;
}
constexpr bool is_output_type(octet_type type) {
  return type == OCTET_BF16 || type == OCTET_F16 || type == OCTET_F32;
}

// "0x7f12..." for sentences about pointers.
std::string pointer_text(const void* pointer);

}  // namespace oct::core
