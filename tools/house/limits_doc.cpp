// Prints docs/limits.md from the table of refusals (src/core/refusals.cpp), so that documentation
// and library cannot differ. A test holds that the checked-in page is what this prints.
//
//   octet_limits_doc > docs/limits.md      octet_limits_doc --check docs/limits.md
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/refusals.h"

namespace {

constexpr const char* kIntroduction = R"(# Limits

What the library refuses, with the sentence it says and the reason; at the end, what the command refuses of files and
benchmarks (its options say themselves what they take, and so do the exceptions of the Python package). `supports()` and `plan_gemm()` apply the rules of
a problem, `check()` and every run also those of the arguments; `validate()` reads grouping metadata and scales too. A
sentence names the argument, what it was and what is wanted; words in braces stand for values. The first rule broken is
the one told, nothing is written, and nothing is ever reinterpreted to make a call fit.

This page is printed by `octet_limits_doc` from the table that the library itself uses; do not edit it.

## What works and what is refused

| | works | refused |
|---|---|---|
| M, N, K | any from 0 to 2147483647: odd ones, 103, a half-full last K-block, an odd number of K-blocks; results of more than 2^31 elements | negative or larger sizes; on the GPU an M or N whose last tile ends beyond 2^31 |
| groups | any number, 0 too; empty groups anywhere | several groups in a dense problem |
| A and B | any pitch of at least one row that is a multiple of 16 bytes, based on a multiple of 16 bytes | other pitches and bases: rows are read by the copy engine. Pad the pitch, not the problem |
| C and D | any pitch of at least one row; C apart from D, or D itself; column slices of one buffer side by side | C or an input that shares memory with D in any other way |
| operand types | e4m3 with FP32 scales; BF16 without scales | e5m2, FP4, mixed types; UE8M0 scales in a GEMM |
| results | BF16, FP16, FP32 | |
| scales | 1D2D and 1D1D; row-major, column-major, any pitch, stride 0 to repeat one | strides that contradict `sfa_layout` or `sfb_layout`; 1D2D in K-grouped problems |
| contiguous | blocks of 64, 128, 192, ... rows, ending in rows of -1 or not | other alignments (offsets problems need none) |
| offsets, aligned offsets | any alignment; gaps, rows before the first and after the last group | |
| masked | any count up to `max_m`, whatever `max_m` is | |
| K-grouped | group starts at multiples of 128 with any true K; packed groups of multiples of 128; K of 0 | a bias |
| bad grouping metadata | is clamped: nothing outside the declared extents is touched, and `validate()` names it | |
| split | 1 to 64 ranges of K, more than there are K-blocks too | more than 64 |
| devices | planning for any preset without a device; the CPU backend anywhere | compute capabilities other than 9.0 |
| quantisation | FP32, BF16, FP16; 1x128, 128x128; both axes; transposed; FP32, power-of-two and UE8M0 scales; any edge | scales written to one place (stride 0; reading them so is fine); codes longer than K rounded up to 128 |
)";

constexpr const char* kOfTheCommand = R"(
## The command: files and benchmarks

Said behind the file's name (`octet: x.npy: is empty`), with exit code 2. What options want, `octet COMMAND --help` says.
)";

const char* code_word(octet_code code) {
  switch (code) {
    case OCTET_INVALID_ARGUMENT: return "invalid argument";
    case OCTET_UNSUPPORTED: return "unsupported";
    case OCTET_NO_DEVICE: return "no device";
    case OCTET_NOT_PREPARED: return "not prepared";
    case OCTET_DEVICE_ERROR: return "device error";
    case OCTET_OUT_OF_MEMORY: return "out of memory";
    case OCTET_INTERNAL: return "internal fault";
    default: return "other";
  }
}

// What the command refuses of files, and of benchmarks; behind the name of what it is said of, with
// exit code 2. tests/docs/check_limits.py compares these with the command's sources.
struct CommandRow {
  const char* topic;
  const char* sentence;
  const char* why;
};
constexpr const char kJson[] =
    "JSON: headers of .safetensors, config.json, model.safetensors.index.json";
constexpr CommandRow kCommand[] = {
    {"Any file", "cannot be opened: {got}", ""},
    {"Any file", "is not a regular file", "A pipe has no end that is known beforehand."},
    {"Any file", "cannot be mapped: {got}", ""},
    {"Any file", "cannot be read: {got}", "A folder."},
    {"Any file", "must be a .npy file, a .safetensors file or a folder of a model", "By its name."},
    {"Any file", "{file}: must have a tensor's name behind the colon", ""},
    {"Any file", "holds {got} tensors: add :TENSOR, one of {want}", ""},
    {"Any file", "has no tensor {got}: it has {want}", ""},
    {"Any file", "{tensor}: has shape {got}: must be a matrix of at most {want} rows and columns",
     ""},
    {kJson, "nests deeper than {want} levels",
     "128. The library that reads JSON copies, prints and destroys documents by recursion; models' "
     "own files have fewer than ten levels."},
    {kJson, "its header nests deeper than {want} levels", "128, as above."},
    {kJson, "has \"{got}\" twice in one object: must have it once",
     "The files are read and written again, and one of the two would be lost."},
    {kJson, "has {got} twice in the header",
     "Said behind `tensor NAME:`. A tensor that is there itself twice `is in its header twice`."},
    {kJson, "has the integer {got}: must be from {first} to {last}",
     "Integers of 64 bits; a longer one would become a float."},
    {kJson, "is not JSON from character {got} on (which has neither NaN nor Infinity)", ""},
    {kJson, "is not JSON with numbers that a double holds", ""},
    {kJson, "must be a JSON object with a weight_map", "An index."},
    {kJson, "has the metadata {got}: must be an object", "An index."},
    {kJson, "tensor {tensor}: is in \"{got}\": must be in a .safetensors file beside it",
     "An index names no file elsewhere."},
    {kJson, "holds no {want} and no .safetensors file", "A folder."},
    {kJson, "tensor {tensor}: is in {file} and in {other}", ""},
    {kJson, "has no tensor {want}", "A file that has lost what the index says is in it."},
    {kJson, "{file}: tensor {tensor}: would be written twice", "Two names that would be one."},
    {".safetensors", "has {got} bytes: a safetensors file has at least 8", ""},
    {".safetensors",
     "says its header has {got} bytes: must have at most {want}, the format's own limit",
     "100 MB."},
    {".safetensors", "says its header has {got} bytes: the file has {want}",
     "A file that was cut; .npy too."},
    {".safetensors", "its header is not a JSON object", ""},
    {".safetensors", "has the __metadata__ {got}: must be an object", ""},
    {".safetensors", "is {got} in the header: must have dtype, shape and two data_offsets",
     "This and what follows is said behind the tensor's name."},
    {".safetensors", "has dtype {got}: must be one of {want}",
     "Types that are copied; codes, scales and what is quantised are fewer."},
    {".safetensors", "has the extent {got} in its shape: must be a whole number from 0 to {want}",
     ""},
    {".safetensors", "has shape {got} of {dtype}: must have fewer than 2^63 bytes", ".npy too."},
    {".safetensors",
     "has data_offsets {got}: must be whole numbers from 0 to {want}, in order: so many bytes are "
     "behind the header",
     "A file that was cut."},
    {".safetensors",
     "has data_offsets {got}, {bytes} bytes: its shape {shape} of {dtype} needs {want}", ""},
    {".safetensors", "{tensor}: shares bytes with {other}", ""},
    {".safetensors", "has {got} bytes between {tensor} and {other}: must have none there",
     "The format wants every byte behind the header to be one tensor's; `its header` stands for a "
     "tensor before the first."},
    {".safetensors", "has {got} bytes behind {tensor}{last}: must end there",
     "The same. What is behind would be lost, or is the rest of another file."},
    {".npy", "is empty", ""},
    {".npy", "does not begin as a .npy file does", ""},
    {".npy", "ends in the middle of its header", ""},
    {".npy", "has version {got}.{minor} of the format: must be 1, 2 or 3", ""},
    {".npy", "its header makes no sense at character {got}", ""},
    {".npy", "its header has {got} twice", ""},
    {".npy", "its header has an entry \"{got}\" that is not known", ""},
    {".npy", "its header lacks descr, fortran_order or shape", ""},
    {".npy", "has the extent {got} in its shape: must be from 0 to {want}", ""},
    {".npy", "has more than {want} dimensions: must have at most {want}", "64, as in NumPy."},
    {".npy", "holds records (a structured dtype): must be a plain array", ""},
    {".npy", "holds Python objects (dtype \"{got}\"): must hold numbers", ""},
    {".npy", "is big-endian (dtype \"{got}\"): save it after .astype(x.dtype.newbyteorder('<'))",
     ""},
    {".npy", "has dtype \"{got}\": must be float32, float16, uint8 (e4m3) or uint16 (bfloat16)",
     ""},
    {".npy", "is in Fortran order: save numpy.ascontiguousarray() of it", ""},
    {".npy", "has {got} bytes of elements: its shape {shape} needs {want}",
     "A file that was cut, or has more."},
    {"Numbers given as scales", "{option} {got}: must be finite, as a scale is", ""},
    {"Numbers given as scales",
     "{option} {got}: must be at most {want} in magnitude, the largest number of FP32", ""},
    {"Numbers given as scales",
     "{option} {got}: must be 0 or at least {want} in magnitude, the smallest number of FP32",
     "It would be 0."},
    {"Benchmarks", "{problem}: its groups have {got} rows together: must have fewer than 2^31",
     "`octet bench` draws each group's rows, up to 1.3 times the average, rounded up to the "
     "alignment; kernels count rows in 32 bits."},
};

// `code`: of the column between, if there is one.
void put_row(std::ostream& out, const char* sentence, const std::string& code, const char* why) {
  out << "| `" << sentence << "` | " << code << why << (*why != 0 ? " |\n" : "|\n");
}

std::string page() {
  std::ostringstream out;
  out << kIntroduction;
  std::vector<std::string_view> topics;  // in the order of the table
  for (const auto& rule : oct::core::rule_texts()) {
    bool seen = false;
    for (const auto topic : topics) seen = seen || topic == rule.topic;
    if (!seen) topics.push_back(rule.topic);
  }
  for (const auto topic : topics) {
    out << "\n## " << topic << "\n\n| sentence | code | why |\n|---|---|---|\n";
    for (const auto& rule : oct::core::rule_texts()) {
      if (topic != rule.topic) continue;
      put_row(out, rule.sentence, std::string(code_word(rule.code)) + " | ", rule.why);
    }
  }
  out << kOfTheCommand;
  std::string_view topic;
  for (const CommandRow& row : kCommand) {
    if (topic != row.topic) out << "\n### " << row.topic << "\n\n| sentence | why |\n|---|---|\n";
    topic = row.topic;
    put_row(out, row.sentence, "", row.why);
  }
  return out.str();
}

int check(const char* path) {
  std::ifstream file(path);
  std::stringstream have;
  have << file.rdbuf();
  std::istringstream want(page());
  std::string have_line, want_line;
  for (int line = 1;; ++line) {
    const bool more_want = static_cast<bool>(std::getline(want, want_line));
    const bool more_have = static_cast<bool>(std::getline(have, have_line));
    if (!more_want && !more_have) return 0;
    if (more_want == more_have && want_line == have_line) continue;
    std::cerr << path << ":" << line << ": differs from the table of refusals\n  there: "
              << (more_have ? have_line : "(the end)")
              << "\n  wanted: " << (more_want ? want_line : "(the end)")
              << "\nrun: octet_limits_doc > docs/limits.md\n";
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--check") return check(argv[2]);
  if (argc != 1) {
    std::cerr << "usage: octet_limits_doc [--check FILE]\n";
    return 2;
  }
  std::cout << page();
  return 0;
}
