// See types.h.
#include "core/types.h"

#include <fmt/format.h>

namespace oct::core {

const char* type_name(octet_type type) {
  switch (type) {
    case OCTET_NONE: return "none";
    case OCTET_E4M3: return "e4m3";
    case OCTET_BF16: return "bf16";
    case OCTET_F16: return "f16";
    case OCTET_F32: return "f32";
    case OCTET_I32: return "i32";
    case OCTET_I64: return "i64";
    case OCTET_UE8M0: return "ue8m0";
    default: return "unknown";
  }
}

std::string type_text(octet_type type) {
  return type < OCTET_NONE || type > OCTET_UE8M0 ? std::to_string(type) : type_name(type);
}

const char* grouping_name(octet_grouping kind) {
  switch (kind) {
    case OCTET_DENSE: return "dense";
    case OCTET_BATCHED: return "batched";
    case OCTET_CONTIGUOUS: return "contiguous";
    case OCTET_OFFSETS: return "offsets";
    case OCTET_ALIGNED: return "aligned";
    case OCTET_MASKED: return "masked";
    case OCTET_K_GROUPED: return "kgrouped";
    default: return "unknown";
  }
}

const char* granularity_name(octet_scale_granularity granularity) {
  switch (granularity) {
    case OCTET_SCALE_NONE: return "none";
    case OCTET_1D2D: return "1d2d";
    case OCTET_1D1D: return "1d1d";
    default: return "unknown";
  }
}

const char* scale_layout_name(octet_scale_layout layout) {
  switch (layout) {
    case OCTET_COLUMN_MAJOR: return "column-major";
    case OCTET_ROW_MAJOR: return "row-major";
    case OCTET_COLUMN_MAJOR_ODD: return "column-major with any pitch";
    default: return "unknown";
  }
}

std::string pointer_text(const void* pointer) { return fmt::format("{}", pointer); }

}  // namespace oct::core
