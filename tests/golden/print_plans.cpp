// Prints tests/golden/plans.txt: the planner's choices for the problems of cases/plans.txt on three
// devices, one a line. A change of the planner shows there as a diff to be reviewed:
//
//   build/release/print_plans > tests/golden/plans.txt
#include <cstdio>
#include <exception>
#include <string>

#include "golden/plan_lines.h"

int main() {
  try {
    for (const std::string& line : oct::golden::plan_lines()) std::printf("%s\n", line.c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "print_plans: %s\n", error.what());
    return 1;
  }
}
