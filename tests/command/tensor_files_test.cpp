// Readers of .npy and .safetensors against what is written by hand and what is damaged, and the
// writer's promise that a final name never holds half a file.
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "json_watch.h"
#include "npy.h"
#include "octet/octet.hpp"
#include "output_file.h"
#include "safetensors.h"
#include "tensor_output.h"

namespace {

namespace fs = std::filesystem;
using namespace octet;
using namespace octet::tool;

class TensorFiles : public testing::Test {
 protected:
  TensorFiles() {
    std::string name = (fs::temp_directory_path() / "octet-files-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~TensorFiles() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(at(name), std::ios::binary) << bytes;
    return at(name);
  }
  std::string read(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream(at(name), std::ios::binary).rdbuf();
    return out.str();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "was read";
}

std::string npy(const std::string& header, const std::string& elements, int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    out += static_cast<char>(header.size() >> 8 * i & 0xff);
  }
  return out + header + elements;
}

TEST_F(TensorFiles, NpyOfEveryVersionAndTypeIsRead) {
  const std::string tail = "'fortran_order': False, 'shape': (2, 3), }\n";
  for (int version = 1; version <= 3; ++version) {
    const Npy file(write("a.npy", npy("{'descr': '<f4', " + tail, std::string(24, 'x'), version)));
    EXPECT_EQ(file.tensor().dtype, "F32");
    EXPECT_EQ(file.tensor().shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(file.tensor().bytes, 24);
    EXPECT_EQ(std::to_integer<char>(file.tensor().data[0]), 'x');
  }
  const struct {
    const char *descr, *dtype;
    std::size_t bytes;
  } kTypes[] = {{"<f2", "F16", 2}, {"|u1", "U8", 1},  {"<u2", "U16", 2},
                {"|V1", "U8", 1},  {"<V2", "U16", 2}, {"|V2", "U16", 2}};
  for (const auto& type : kTypes) {
    const Npy file(write("a.npy", npy("{'descr': '" + std::string(type.descr) + "', " + tail,
                                      std::string(6 * type.bytes, 'x'))));
    EXPECT_EQ(file.tensor().dtype, type.dtype) << type.descr;
  }
  // Any order of the entries, no comma at the end, a scalar, one dimension, Python 2's integers.
  const Npy scalar(
      write("a.npy", npy("{\"shape\":(),'fortran_order':False,'descr':'<f4'}", "abcd")));
  EXPECT_TRUE(scalar.tensor().shape.empty());
  const Npy line(
      write("a.npy", npy("{'shape': (3L,), 'fortran_order': False, 'descr': '|u1'}", "abc")));
  EXPECT_EQ(line.tensor().shape, std::vector<int64_t>{3});
}

TEST_F(TensorFiles, DamagedNpyIsRefusedWithASentence) {
  const auto header = [](const std::string& descr, const std::string& order,
                         const std::string& shape) {
    return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  };
  const std::string good = npy(header("'<f4'", "False", "(1,)"), "abcd");
  std::string many;
  for (int i = 0; i < 65; ++i) many += "1,";
  const struct {
    std::string bytes, says;
  } kCases[] = {
      {"", "is empty"},
      {"PK\3\4 is a zip file", "does not begin as a .npy file does"},
      {good.substr(0, 9), "ends in the middle of its header"},
      {npy(header("'<f4'", "False", "(1,)"), "abcd", 4), "has version 4.0"},
      {good.substr(0, 30), "says its header has 57 bytes: the file has 20"},
      {good.substr(0, good.size() - 1), "has 3 bytes of elements: its shape [1] needs 4"},
      {good + "e", "has 5 bytes of elements: its shape [1] needs 4"},
      {npy(header("'<f4'", "True", "(1,)"), "abcd"), "is in Fortran order"},
      {npy(header("'>f4'", "False", "(1,)"), "abcd"), "is big-endian"},
      {npy(header("'|O'", "False", "(1,)"), "abcd"), "holds Python objects"},
      {npy(header("[('x', '<f4')]", "False", "(1,)"), "abcd"), "holds records"},
      {npy(header("'<f8'", "False", "(1,)"), "abcdefgh"), "has dtype \"<f8\": must be float32"},
      {npy(header("'<f4'", "False", "(-1,)"), ""),
       "has the extent -1 in its shape: must be from 0 to 9223372036854775807"},
      {npy(header("'<f4'", "False", "(99999999999999999999,)"), ""),
       "has the extent 99999999999999999999 in its shape: must be"},
      {npy(header("'<f4'", "False", "(4611686018427387904, 2)"), ""),
       "has shape [4611686018427387904, 2] of <f4: must have fewer than 2^63 bytes"},
      {npy(header("'<f4'", "False", "(" + std::string(200, '1') + ")"), ""),
       "has the extent " + std::string(200, '1') + " in its shape: must be"},
      {npy(header("'<f4'", "False", "(" + std::string(800, '1') + ")"), ""), "111... in its shape"},
      {npy(header("'<f4'", "False", "(" + many + ")"), "abcd"),
       "has more than 64 dimensions: must have at most 64"},
      {npy(header("'<f4'", "Maybe", "(1,)"), "abcd"), "makes no sense at character"},
      {npy(header("'<f4'", "False", "(1"), "abcd"), "makes no sense at character"},
      {npy("{'descr': '<f4'}", "abcd"), "lacks descr, fortran_order or shape"},
      {npy("{'descr': '<f4', 'descr': '<f4'}", "abcd"), "has descr twice"},
      {npy("{'other': '<f4'}", "abcd"), "\"other\" that is not known"},
      {npy(std::string("{'a\nb': '<f4'}"), "abcd"), "\"a?b\""},
      {npy("", "abcd"), "makes no sense at character 0"},
  };
  for (const auto& c : kCases) {
    const std::string path = write("bad.npy", c.bytes);
    const std::string said = refusal([&] { const Npy file(path); });
    EXPECT_EQ(said.find(path + ": "), 0u) << said;
    EXPECT_NE(said.find(c.says), std::string::npos) << said << "\nwanted: " << c.says;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
  // No beginning of a file is anything but refused.
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::string path = write("bad.npy", good.substr(0, size));
    EXPECT_NE(refusal([&] { const Npy file(path); }), "was read") << size;
  }
}

std::string safetensors(const std::string& header, const std::string& elements) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> 8 * i & 0xff);
  return out + header + elements;
}

// As many as large models have. (A parser that looks through all tensors for each needs minutes.)
TEST_F(TensorFiles, AHeaderOfManyTensors) {
  constexpr int kTensors = 200000;
  std::string header = "{", elements(4 * kTensors, 'x');
  for (int i = 0; i < kTensors; ++i) {
    if (i > 0) header += ",";
    header += R"("t)";
    header += std::to_string(i);
    header += R"(":{"dtype":"F32","shape":[1],"data_offsets":[)";
    header += std::to_string(4 * i);
    header += ",";
    header += std::to_string(4 * i + 4);
    header += "]}";
  }
  write("many.safetensors", safetensors(header + "}", elements));
  const Safetensors file(at("many.safetensors"));
  EXPECT_EQ(file.tensors().size(), std::size_t{kTensors});
  EXPECT_EQ(file.at("t199999").bytes, 4);
}

TEST_F(TensorFiles, DamagedSafetensorsIsRefusedWithASentence) {
  const auto entry = [](const std::string& name, const std::string& rest) {
    return "\"" + name + "\":{" + rest + "}";
  };
  const std::string four = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";
  const struct {
    std::string bytes, says;
  } kCases[] = {
      {"", "has 0 bytes: a safetensors file has at least 8"},
      {"1234567", "has 7 bytes"},
      {std::string(8, '\xff') + "{}",
       "says its header has 18446744073709551615 bytes: must have at most 100000000"},
      {safetensors("{}", "").substr(0, 9), "says its header has 2 bytes: the file has 1"},
      {safetensors("[]", ""), "not a JSON object"},
      {safetensors(std::string(100000, '['), ""), "its header nests deeper than 128 levels"},
      {safetensors("{" +
                       entry("a", four + ",\"x\":" + std::string(1000000, '[') +
                                      std::string(1000000, ']')) +
                       "}",
                   "abcd"),
       "its header nests deeper than 128 levels"},
      {safetensors("{\"\xff\":1}", ""), "not a JSON object"},
      {safetensors(std::string("{}\0{}", 5), ""), "not a JSON object"},
      {safetensors("{" + entry("a", four) + "," + entry("a", four) + "}", "abcd"),
       "tensor a: is in its header twice"},
      {safetensors("{" + entry("a", R"("dtype":"F32",)" + four) + "}", "abcd"),
       "tensor a: has dtype twice in the header"},
      {safetensors("{" + entry("a", four) + "," +
                       entry("b", R"("dtype":"U8","shape":[2],"data_offsets":[3,5])") + "}",
                   "abcde"),
       "tensor b: shares bytes with tensor a"},
      {safetensors("{" + entry("a", four) + "}", "abc"),
       "tensor a: has data_offsets [0,4]: must be whole numbers from 0 to 3, in order"},
      {safetensors("{" + entry("a", R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])") + "}",
                   "abcd"),
       "tensor a: has data_offsets [-4,0]: must be whole numbers"},
      {safetensors("{" + entry("a", R"("dtype":"F32","shape":[1],"data_offsets":[0,"4"])") + "}",
                   "abcd"),
       "tensor a: has data_offsets [0,\"4\"]: must be whole numbers"},
      {safetensors("{" + entry("a", R"("dtype":"F32","shape":[1],"data_offsets":[4,0])") + "}",
                   "abcd"),
       "tensor a: has data_offsets [4,0]: must be whole numbers from 0 to 4, in order"},
      {safetensors("{" + entry("a", R"("dtype":"F32","shape":[2],"data_offsets":[0,4])") + "}",
                   "abcd"),
       "tensor a: has data_offsets [0,4], 4 bytes: its shape [2] of F32 needs 8"},
      {safetensors("{" + entry("a", R"("dtype":"F4","shape":[2],"data_offsets":[0,4])") + "}",
                   "abcd"),
       "tensor a: has dtype F4: must be one of F32, BF16, F16, F8_E4M3, "},
      {safetensors("{" + entry("a", R"("dtype":"F32","shape":[9e99],"data_offsets":[0,4])") + "}",
                   "abcd"),
       "tensor a: has the extent 9e+99 in its shape: must be a whole number from 0 to "
       "9223372036854775807"},
      {safetensors("{" +
                       entry("a", R"("dtype":"U8","shape":[9223372036854775808],)"
                                  R"("data_offsets":[0,4])") +
                       "}",
                   "abcd"),
       "tensor a: has the extent 9223372036854775808 in its shape: must be"},
      {safetensors("{" + entry("a", R"("dtype":"U8","shape":[-1],"data_offsets":[0,4])") + "}",
                   "abcd"),
       "tensor a: has the extent -1 in its shape: must be"},
      {safetensors(
           "{" +
               entry("a", R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4])") +
               "}",
           "abcd"),
       "tensor a: has shape [4611686018427387904,4] of F32: must have fewer than 2^63 bytes"},
      {safetensors("{" + entry("a\\nb", "") + "}", ""),
       "tensor a?b: is {} in the header: must have dtype, shape and two data_offsets"},
      {safetensors("{\"__metadata__\":5}", ""), "has the __metadata__ 5: must be an object"},
      // Bytes that are no tensor's: behind all of them, between them, before them.
      {safetensors("{" + entry("a", four) + "}", "abcdefg"),
       "has 3 bytes behind tensor a, the last: must end there"},
      {safetensors("{" + entry("a", four) + "," +
                       entry("b", R"("dtype":"U8","shape":[2],"data_offsets":[6,8])") + "}",
                   "abcdefgh"),
       "has 2 bytes between tensor a and tensor b: must have none there"},
      {safetensors("{" + entry("b", R"("dtype":"U8","shape":[2],"data_offsets":[1,3])") + "}",
                   "abc"),
       "has 1 bytes between its header and tensor b: must have none there"},
      {safetensors("{" + entry("a", R"("dtype":"U8","shape":[0],"data_offsets":[1,1])") + "}", "a"),
       "has 1 bytes behind its header: must end there"},
      {safetensors("{}", "a"), "has 1 bytes behind its header: must end there"},
  };
  for (const auto& c : kCases) {
    const std::string path = write("bad.safetensors", c.bytes);
    const std::string said = refusal([&] { const Safetensors file(path); });
    EXPECT_EQ(said.find(path + ": "), 0u) << said;
    EXPECT_NE(said.find(c.says), std::string::npos) << said << "\nwanted: " << c.says;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

// config.json and the index of a model, which are written again.
TEST_F(TensorFiles, JsonOfWhichADocumentHoldsAllHasNoFault) {
  const auto fault = [](const std::string& text) {
    return json_fault(text.data(), text.data() + text.size());
  };
  for (const std::string text :
       {R"({"a":{"a":1,"b":[{"a":1},{"a":1}]},"b":{"a":1}})",
        R"([-9223372036854775808,18446744073709551615,1e300,1.00000000000000000000001,-0.5E-30])",
        R"({"":"12345678901234567890123"})", "not JSON", ""}) {
    EXPECT_EQ(fault(text), "") << text;
  }
  EXPECT_EQ(fault(R"({"a":1,"b":{"a":1},"a":2,"b":3})"),
            R"(has "a" twice in one object: must have it once)");
  EXPECT_EQ(fault(R"([{"x\ny":1,"x\u000ay":18446744073709551616}])"),
            R"(has "x?y" twice in one object: must have it once)");
  EXPECT_EQ(fault("[18446744073709551616,{}]"),
            "has the integer 18446744073709551616: must be from -9223372036854775808 to "
            "18446744073709551615");
  EXPECT_EQ(fault(std::string(128, '[') + std::string(128, ']')), "");
  EXPECT_EQ(fault(std::string(129, '[')), "nests deeper than 128 levels");
}

TEST_F(TensorFiles, WhatIsWrittenIsRead) {
  {
    SafetensorsOutput out(at("x.safetensors"),
                          {{"codes", "F8_E4M3", {3, 5}},
                           {"none", "F16", {0, 7}},
                           {"scales", "F32", {3, 1}}},
                          {{"made by", "a test"}});
    const Place codes = out.place(0), scales = out.place(2);
    EXPECT_EQ(scales.offset % 4, 0);
    scales.file->write_at(scales.offset, "123456789012", 12);
    codes.file->write_at(codes.offset + 5, "fghijklmno", 10);
    codes.file->write_at(codes.offset, "abcde", 5);
    EXPECT_FALSE(fs::exists(at("x.safetensors")));
    out.file().commit();
  }
  const Safetensors file(at("x.safetensors"));
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(file.metadata().at("made by"), "a test");
  EXPECT_EQ(file.at("none").bytes, 0);
  const Tensor& codes = file.at("codes");
  EXPECT_EQ(codes.shape, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(std::memcmp(codes.data, "abcdefghijklmno", 15), 0);
  EXPECT_EQ(std::memcmp(file.at("scales").data, "123456789012", 12), 0);
  EXPECT_NE(refusal([&] {
              SafetensorsOutput(at("y.safetensors"), {{"a", "F32", {1}}, {"a", "F32", {1}}}, {});
            }).find("tensor a: would be written twice"),
            std::string::npos);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {3}, {2, 3}, {1, 2, 3}, {0, 5}}) {
    // Another name each time: what a process has read it does not write over.
    const std::string name = at("x" + std::to_string(shape.size()) +
                                (shape.size() == 2 ? std::to_string(shape[0]) : "") + ".npy");
    NpyOutput out(name, OCTET_BF16, shape);
    int64_t elements = 1;
    for (const int64_t extent : shape) elements *= extent;
    const std::string bytes(static_cast<std::size_t>(2 * elements), 'x');
    EXPECT_EQ(out.place().offset % 64, 0);
    out.place().file->write_at(out.place().offset, bytes.data(), 2 * elements);
    out.file().commit();
    const Npy again(name);
    EXPECT_EQ(again.tensor().dtype, "U16");
    EXPECT_EQ(again.tensor().shape, shape);
  }
}

TEST_F(TensorFiles, SmallFloatsHaveTheirValues) {
  const auto value = [](octet_type type, std::vector<uint8_t> bytes) {
    float x = 0;
    to_floats(type, reinterpret_cast<const std::byte*>(bytes.data()), 1, &x);
    return x;
  };
  EXPECT_EQ(value(OCTET_E4M3, {0x38}), 1.0f);
  EXPECT_EQ(value(OCTET_E4M3, {0xfe}), -448.0f);
  EXPECT_EQ(value(OCTET_E4M3, {0x01}), std::ldexp(1.0f, -9));
  EXPECT_TRUE(std::isnan(value(OCTET_E4M3, {0xff})));
  EXPECT_EQ(value(OCTET_F16, {0x00, 0xc5}), -5.0f);
  EXPECT_EQ(value(OCTET_F16, {0x01, 0x00}), std::ldexp(1.0f, -24));
  EXPECT_EQ(value(OCTET_F16, {0x00, 0xfc}), -INFINITY);
  EXPECT_TRUE(std::isnan(value(OCTET_F16, {0x01, 0x7c})));
  EXPECT_EQ(value(OCTET_BF16, {0xc0, 0x3f}), 1.5f);
  EXPECT_EQ(value(OCTET_UE8M0, {127}), 1.0f);
  EXPECT_EQ(value(OCTET_UE8M0, {0}), 0.0f);
  EXPECT_EQ(value(OCTET_F32, {0, 0, 0x80, 0x3f}), 1.0f);
}

TEST_F(TensorFiles, AnOutputThatIsNotCommittedChangesNothing) {
  write("d.npy", "before");
  {
    OutputFile out(at("d.npy"));
    out.write_at(0, "after", 5);
  }
  EXPECT_EQ(read("d.npy"), "before");
  EXPECT_EQ(files(), 1u);
  ::chmod(at("d.npy").c_str(), 0640);
  fs::create_symlink("d.npy", at("link.npy"));
  OutputFile out(at("link.npy"));
  out.write_at(0, "after", 5);
  out.commit();
  EXPECT_EQ(read("d.npy"), "after");
  EXPECT_TRUE(fs::is_symlink(at("link.npy")));
  struct stat info {};
  ASSERT_EQ(::stat(at("d.npy").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0640u);
}

TEST_F(TensorFiles, OutputsThatCannotBeAreRefused) {
  EXPECT_NE(refusal([&] {
              OutputFile out(at(std::string(300, 'x') + "/d.npy"));
            }).find("cannot be written: File name too long"),
            std::string::npos);
  fs::create_directory(at("folder"));
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  for (const std::string& path :
       {at("folder"), at("fifo"), std::string("/dev/full"), std::string("/dev/null")}) {
    EXPECT_NE(refusal([&] { OutputFile out(path); }).find("is not a regular file"),
              std::string::npos)
        << path;
  }
  for (const std::string& path :
       {at("missing/d.npy"), std::string("/proc/d.npy"), at("fifo/d.npy")}) {
    EXPECT_NE(refusal([&] { OutputFile out(path); }).find("cannot be written in"),
              std::string::npos)
        << path;
  }
  EXPECT_NE(refusal([&] { OutputFile out(""); }), "was read");
  EXPECT_NE(refusal([&] { OutputFile out(at("new/")); }), "was read");
  write("file", "x");
  EXPECT_NE(refusal([&] { OutputFolder out(at("file")); }).find("is there already"),
            std::string::npos);
  EXPECT_NE(refusal([&] { OutputFolder out(folder_.string()); }).find("is there already"),
            std::string::npos);
  EXPECT_EQ(files(), 3u);
}

TEST_F(TensorFiles, AFolderIsThereWholeOrNotAtAll) {
  {
    OutputFolder out(at("model"));
    OutputFile(out.path() + "/x").commit();
  }
  EXPECT_EQ(files(), 0u);
  OutputFolder out(at("model/"));
  OutputFile(out.path() + "/x").commit();
  EXPECT_FALSE(fs::exists(at("model")));
  out.commit();
  EXPECT_TRUE(fs::exists(at("model/x")));
  EXPECT_EQ(files(), 1u);
}

// A process that writes half a file and is ended by a signal. gtest starts this program anew for
// it; the environment tells that one which folder to write in.
TEST_F(TensorFiles, ASignalLeavesTheFinalNameAsItWas) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr const char* kVariable = "OCTET_TEST_FOLDER";
  const char* const given = std::getenv(kVariable);
  const fs::path folder = given == nullptr ? folder_ : fs::path(given);
  ASSERT_EQ(::setenv(kVariable, folder.c_str(), 1), 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGKILL}) {
    write("d.npy", "before");
    EXPECT_EXIT(
        {
          OutputFile out(folder / "d.npy");
          OutputFolder model(folder / "model");
          out.write_at(0, "half", 4);
          OutputFile inside(model.path() + "/x");
          ::kill(::getpid(), signal);
          ::sleep(20);
          ::_exit(98);
        },
        testing::KilledBySignal(signal), "");
    EXPECT_EQ(read("d.npy"), "before");
    EXPECT_FALSE(fs::exists(at("model")));
    EXPECT_EQ(files(), signal == SIGKILL ? 3u : 1u) << signal;
  }
  ASSERT_EQ(::unsetenv(kVariable), 0);
}

}  // namespace
