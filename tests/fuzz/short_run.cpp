// A fuzz target without libFuzzer: its seeds, then so many changes of them, the same ones every
// time and on every machine. What every test run has of the fuzz targets; `./dev fuzz` looks
// further.
//
//     short_run_TARGET RUNS SEED_FOLDER
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "support/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<uint8_t>;
constexpr std::size_t kLongest = 2048;

volatile std::sig_atomic_t now = -1;  // the run under way

extern "C" void say_run(int signal_number) {
  std::fprintf(stderr, "run %d stopped it; the same arguments do that again\n",
               static_cast<int>(now));
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

class Changes {
 public:
  explicit Changes(std::vector<Bytes> seeds) : seeds_(std::move(seeds)) {}

  Bytes next() {
    Bytes bytes = seeds_[below(seeds_.size())];
    for (std::size_t i = below(8) + 1; i > 0; --i) change(bytes);
    if (bytes.size() > kLongest) bytes.resize(kLongest);
    // Some become seeds themselves, so that changes add up.
    if (below(16) == 0) seeds_[below(seeds_.size() / 2 + 1)] = bytes;
    return bytes;
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.bits() % n); }
  uint8_t byte() { return static_cast<uint8_t>(random_.bits()); }

  void change(Bytes& bytes) {
    const std::size_t at = below(bytes.size() + 1);
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t length = below(bytes.size() - at + 1);
    const auto end = place + static_cast<std::ptrdiff_t>(length);
    const bool inside = at < bytes.size();
    switch (below(7)) {
      case 0:
        if (inside) bytes[at] = static_cast<uint8_t>(bytes[at] ^ 1u << below(8));
        break;
      case 1:
        if (inside) bytes[at] = byte();
        break;
      case 2: bytes.insert(place, 1 + below(8), byte()); break;
      case 3: bytes.erase(place, end); break;
      case 4: {
        const Bytes piece(place, end);
        bytes.insert(place, piece.begin(), piece.end());
        break;
      }
      case 5: {  // a part of another seed
        const Bytes& other = seeds_[below(seeds_.size())];
        const std::size_t from = below(other.size() + 1);
        bytes.resize(at);
        bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
        break;
      }
      default:  // numbers at a limit, as text and as bytes
        static const char* const kWords[] = {
            "0", "-1", "2147483647", "2147483648", "9223372036854775807", "\xff\xff\xff\xff",
            "_", "\""};
        const std::string word = kWords[below(std::size(kWords))];
        bytes.insert(place, word.begin(), word.end());
    }
  }

  std::vector<Bytes> seeds_;
  oct::testing_support::Random random_{20261130};
};

std::vector<Bytes> read_folder(const char* folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  std::vector<Bytes> seeds;
  for (const std::string& name : names) {
    std::ifstream file(name, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  for (const int signal_number : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal_number, say_run);
  const int runs = std::atoi(argv[1]);
  const std::vector<Bytes> seeds = read_folder(argv[2]);
  if (seeds.empty() || runs < 1) return 2;
  for (const Bytes& seed : seeds) LLVMFuzzerTestOneInput(seed.data(), seed.size());
  Changes changes(seeds);
  for (int run = 0; run < runs; ++run) {
    now = run;
    const Bytes bytes = changes.next();
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu seeds, %d changes\n", seeds.size(), runs);
  return 0;
}
