// Comparison to the bit, with the first wrong element named: where it is, both values, how many
// more.
#pragma once

#include <string>

#include "support/host_case.h"

namespace oct::testing_support {

// Empty if all of D, the bytes between its rows and its guards are equal.
std::string compare_results(const HostCase& got, const HostCase& want);

// What a run on `before` had to leave as it was: inputs, guards, bytes between rows, rows without
// an owner (zeros where contiguous problems ask for it). Empty if it did.
std::string check_untouched(const HostCase& before, const HostCase& after);

}  // namespace oct::testing_support
