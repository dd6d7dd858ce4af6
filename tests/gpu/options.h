// What the GPU tests are told on their command line: how much, how long, which kernels. A word that
// no test knows ends it with a sentence: misspelt, it would be a test of something else.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>

namespace oct::test {

struct Options {
  int problems;    // random ones: of every kernel, or in all
  double seconds;  // begin no further random problem after so many
  uint64_t seed = 20261130;
  std::string kernel;    // only those whose names contain it
  std::string problem;   // this one alone
  bool small = false;    // few problems, little memory
  bool large = true;     // more than 2^31 outputs
  bool clusters = true;  // kernels that multicast too
};

// `options` as the test has them by itself, changed by those words of the command line that the
// test takes. Exit code 2 for any other.
inline void parse(int argc, char** argv, std::initializer_list<const char*> takes,
                  Options& options) {
  const auto wrong = [&](const char* word, const char* what) {
    std::fprintf(stderr, "%s: %s: %s; it takes", argv[0], word, what);
    for (const char* name : takes) std::fprintf(stderr, " %s", name);
    std::fprintf(stderr, "\n");
    std::exit(2);
  };
  for (int i = 1; i < argc; ++i) {
    const char* const word = argv[i];
    const auto is = [word](const char* name) { return std::strcmp(word, name) == 0; };
    bool known = false;
    for (const char* name : takes) known = known || is(name);
    if (!known) wrong(word, "is no option of this test");
    const auto value = [&] {
      if (i + 1 == argc) wrong(word, "must be followed by a value");
      return argv[++i];
    };
    if (is("--problems")) options.problems = std::atoi(value());
    if (is("--seconds")) options.seconds = std::atof(value());
    if (is("--seed")) options.seed = std::strtoull(value(), nullptr, 10);
    if (is("--kernel")) options.kernel = value();
    if (is("--problem")) options.problem = value();
    if (is("--small")) options.small = true;
    if (is("--skip-large")) options.large = false;
    if (is("--no-clusters")) options.clusters = false;
  }
}

}  // namespace oct::test
