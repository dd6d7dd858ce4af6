// What an octet_tuned_table* points to.
#pragma once

#include "octet/octet.h"
#include "plan/tuned_table.h"

struct octet_tuned_table {
  oct::plan::TunedTable table;
};

namespace oct::capi {

inline const plan::TunedTable* table_of(const octet_tuned_table* table) {
  return table == nullptr ? nullptr : &table->table;
}

}  // namespace oct::capi
