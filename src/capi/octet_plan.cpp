// Planning and tuned tables in the C interface; see octet.cpp.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "capi/guard.h"
#include "capi/tuned_table.h"
#include "octet/octet.h"
#include "plan/device_presets.h"
#include "plan/planner.h"

namespace {

using oct::Status;
using oct::capi::copy_text;
using oct::capi::guarded;
using oct::capi::null;
using oct::capi::table_of;

constexpr const char* kTable = "an octet_tuned_table";

}  // namespace

extern "C" {

octet_code octet_tuned_table_create(const char* text, octet_tuned_table** table) {
  return guarded([&]() -> Status {
    if (text == nullptr) return null("text", "a tuned table's text");
    if (table == nullptr) return null("table", "room for an octet_tuned_table*");
    auto made = std::make_unique<octet_tuned_table>();
    if (Status s = oct::plan::parse_table(text, made->table); !s.ok()) return s;
    *table = made.release();
    return {};
  });
}

void octet_tuned_table_destroy(octet_tuned_table* table) { delete table; }

octet_code octet_tuned_table_set(octet_tuned_table* table, const octet_gemm_plan* plan) {
  return guarded([&]() -> Status {
    if (table == nullptr) return null("table", kTable);
    if (plan == nullptr) return null("plan", "an octet_gemm_plan");
    return oct::plan::set_entry(table->table, *plan);
  });
}

octet_code octet_tuned_table_print(const octet_tuned_table* table, char* text, size_t capacity,
                                   size_t* needed) {
  return guarded([&]() -> Status {
    if (table == nullptr) return null("table", kTable);
    const std::string all = oct::plan::to_string(table->table);
    if (needed != nullptr) *needed = all.size() + 1;
    if (capacity == 0 && needed != nullptr) return {};
    return copy_text(all, text, capacity);
  });
}

octet_code octet_tuned_table_check(const octet_tuned_table* table,
                                   const octet_device_spec* device) {
  return guarded([&]() -> Status {
    if (table == nullptr) return null("table", kTable);
    if (device == nullptr) return null("device", "an octet_device_spec");
    if (Status s = oct::plan::check_device(*device); !s.ok()) return s;
    return oct::plan::check_table(table->table.view(), *device);
  });
}

octet_code octet_plan_gemm(const octet_gemm_problem* problem, const octet_device_spec* device,
                           octet_gemm_plan* plan) {
  return octet_plan_gemm_tuned(problem, device, nullptr, plan);
}

octet_code octet_plan_gemm_tuned(const octet_gemm_problem* problem, const octet_device_spec* device,
                                 const octet_tuned_table* table, octet_gemm_plan* plan) {
  return guarded([&]() -> Status {
    if (problem == nullptr) return null("problem", "an octet_gemm_problem");
    if (device == nullptr) return null("device", "an octet_device_spec");
    if (plan == nullptr) return null("plan", "an octet_gemm_plan");
    octet_gemm_plan made;
    if (Status s = oct::plan::plan_gemm(*problem, *device, table_of(table), made); !s.ok()) {
      return s;
    }
    *plan = made;
    return {};
  });
}

octet_code octet_plan_explain(const octet_gemm_problem* problem, const octet_device_spec* device,
                              char* text, size_t capacity, size_t* needed) {
  return octet_plan_explain_tuned(problem, device, nullptr, text, capacity, needed);
}

octet_code octet_plan_explain_tuned(const octet_gemm_problem* problem,
                                    const octet_device_spec* device, const octet_tuned_table* table,
                                    char* text, size_t capacity, size_t* needed) {
  return guarded([&]() -> Status {
    if (problem == nullptr) return null("problem", "an octet_gemm_problem");
    if (device == nullptr) return null("device", "an octet_device_spec");
    if (text == nullptr && capacity > 0) return null("text", "a buffer for the text");
    std::string all;
    if (Status s = oct::plan::explain(*problem, *device, table_of(table), all); !s.ok()) return s;
    if (needed != nullptr) *needed = all.size() + 1;
    if (capacity > 0) {
      const size_t length = std::min(all.size(), capacity - 1);
      std::memcpy(text, all.data(), length);
      text[length] = 0;
    }
    return {};
  });
}

}  // extern "C"
