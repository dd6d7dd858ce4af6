// Files of problem strings (cases/): one a line, the rest of a line after # is a remark.
#pragma once

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "inputs.h"
#include "octet/octet.hpp"
#include "table_file.h"

namespace octet::tool {

// Appends; throws with a sentence that names the file and the line.
inline void read_cases(const std::string& path, std::vector<GemmProblem>& problems) {
  require_regular("--file", path);
  std::ifstream in(path);
  if (!in) throw std::runtime_error("--file " + path + ": cannot be read");
  note_input(path);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    const std::size_t last = line.find_first_of(" \t\r#", first);
    const std::string text = line.substr(first, last == std::string::npos ? last : last - first);
    auto problem = GemmProblem::parse(text);
    if (!problem.ok()) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + problem.message());
    }
    problems.push_back(problem.value());
  }
  if (in.bad() || problems.empty()) {
    throw std::runtime_error("--file " + path + ": holds no problem string");
  }
}

}  // namespace octet::tool
