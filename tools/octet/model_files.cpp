// See model_files.h.
#include "model_files.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "json_watch.h"
#include "mapped_file.h"

namespace octet::tool {
namespace {

namespace fs = std::filesystem;

void copy_file(const std::string& from, const std::string& to) {
  const MappedFile in(from);
  OutputFile out(to);
  Progress progress("copying " + printable(from), in.size());
  copy_bytes(in.data(), in.size(), {&out, 0}, progress);
  out.commit();
}

template <typename Json>
void write_json(const Json& json, const std::string& path) {
  OutputFile out(path);
  const std::string text = json.dump(2) + "\n";
  out.write_at(0, text.data(), static_cast<int64_t>(text.size()));
  out.commit();
}

// Json: ordered_json keeps the order of names, and looks through all of an object for each.
template <typename Json>
Json read_json(const std::string& path) {
  const MappedFile file(path);
  const auto* text = reinterpret_cast<const char*>(file.data());
  if (const std::string fault = json_fault(text, text + file.size()); !fault.empty()) {
    file.fail(fault);
  }
  const auto no_json_from = [&](std::size_t character) {
    file.fail(fmt::format("is not JSON from character {} on (which has neither NaN nor Infinity)",
                          character));
  };
  // NOTE: to the library a NUL is the end, whatever follows.
  const auto* const nul = std::find(text, text + file.size(), '\0');
  if (nul != text + file.size()) no_json_from(static_cast<std::size_t>(nul - text) + 1);
  Json json;
  try {
    json = Json::parse(text, text + file.size());
  } catch (const typename Json::parse_error& error) {
    no_json_from(error.byte);
  } catch (const typename Json::exception&) {
    file.fail("is not JSON with numbers that a double holds");
  }
  return json;
}

}  // namespace

void ModelDone::note(const Safetensors& in, const std::string& file,
                     const std::vector<NewTensor>& written) {
  for (const NewTensor& tensor : written) {
    if (!where.emplace(tensor.name, file).second) {
      throw std::runtime_error(fmt::format("{}: tensor {}: would be written twice",
                                           printable(in.path()), printable(tensor.name)));
    }
    bytes += tensor_bytes(tensor);
  }
}

void copy_bytes(const std::byte* from, int64_t bytes, const Place& to, Progress& progress) {
  constexpr int64_t kPiece = int64_t{1} << 24;
  for (int64_t at = 0; at < bytes; at += kPiece) {
    const int64_t piece = std::min(kPiece, bytes - at);
    to.file->write_at(to.offset + at, from + at, piece);
    progress.add(piece);
  }
}

nlohmann::json rewrite_model(
    TensorStore& model, const std::string& out, ModelDone& done,
    const std::function<void(const Safetensors&, const std::string&)>& shard,
    const std::function<void(nlohmann::ordered_json&)>& config) {
  const std::string& in = model.path();
  const std::vector<std::string> shards = model.shards();
  // Before the work, not after it.
  std::error_code none;
  if (fs::is_regular_file(in + "/config.json", none))
    read_json<nlohmann::ordered_json>(in + "/config.json");
  OutputFolder folder(out);
  model.check_all();
  for (const std::string& name : shards) shard(model.shard(name), folder.path() + "/" + name);
  nlohmann::json left_out = nlohmann::json::array();
  constexpr std::string_view kIndex = "model.safetensors.index.json";
  std::error_code error;
  for (fs::directory_iterator entry(in, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::string to = folder.path() + "/" + name;
    std::error_code ignored;
    if (name == kIndex || std::find(shards.begin(), shards.end(), name) != shards.end()) continue;
    if (fs::equivalent(entry->path(), folder.path(), ignored)) continue;
    if (!entry->is_regular_file(ignored) || is_safetensors(name)) {
      left_out.push_back(printable(name));
    } else if (name == "config.json") {
      auto json = read_json<nlohmann::ordered_json>(entry->path().string());
      config(json);
      write_json(json, to);
    } else {
      copy_file(entry->path().string(), to);
    }
  }
  if (error) {
    throw std::runtime_error(fmt::format("{}: cannot be read: {}", printable(in), error.message()));
  }
  if (fs::exists(in + "/" + std::string(kIndex), error)) {
    auto index = read_json<nlohmann::json>(in + "/" + std::string(kIndex));
    index["metadata"]["total_size"] = done.bytes;
    index["weight_map"] = done.where;
    write_json(index, folder.path() + "/" + std::string(kIndex));
  }
  folder.commit();
  return left_out;
}

}  // namespace octet::tool
