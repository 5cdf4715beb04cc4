#include "runtime/data/shard_manifest.h"

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/exception_text.h"
#include "runtime/base/json_text.h"
#include "runtime/os/file.h"

namespace dstrain::data {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* file_name = "manifest.json";
constexpr const char* manifest_kind = "dstrain token shards";
constexpr int manifest_version = 1;

ordered_json to_json(const ShardManifest::Making& making) {
  ordered_json inputs = ordered_json::array();
  for (const ShardManifest::Input& input : making.inputs) {
    inputs.push_back(
        {{"path", input.path}, {"bytes", input.bytes}, {"modified_ns", input.modified_ns}});
  }
  return {{"tokenizer", making.tokenizer},     {"vocabulary", making.vocabulary},
          {"format", name_of(making.format)},  {"shard_tokens", making.shard_tokens},
          {"text_column", making.text_column}, {"end_of_text", making.end_of_text},
          {"inputs", std::move(inputs)}};
}

ordered_json to_json(const ShardManifest::Shard& shard) {
  const ShardManifest::Position& end = shard.end;
  return {{"file", shard.file},
          {"tokens", shard.tokens},
          {"documents", shard.documents},
          {"end",
           {{"input", end.input},
            {"offset", end.offset},
            {"line", end.line},
            {"column", end.column},
            {"tokens", end.tokens}}}};
}

ShardManifest::Making making_of(const json& object) {
  ShardManifest::Making making;
  making.tokenizer = object.at("tokenizer");
  making.vocabulary = object.at("vocabulary");
  making.format = object.at("format") == name_of(ShardFormat::megatron) ? ShardFormat::megatron
                                                                        : ShardFormat::llmc;
  making.shard_tokens = object.at("shard_tokens");
  making.text_column = object.at("text_column");
  making.end_of_text = object.at("end_of_text");
  for (const json& input : object.at("inputs")) {
    making.inputs.push_back({input.at("path"), input.at("bytes"), input.at("modified_ns")});
  }
  return making;
}

ShardManifest::Shard shard_of(const json& object) {
  const json& end = object.at("end");
  return {object.at("file"),
          object.at("tokens"),
          object.at("documents"),
          {end.at("input"), end.at("offset"), end.at("line"), end.value("column", std::int64_t{1}),
           end.at("tokens")}};
}

ShardManifest manifest_of(const json& object, const std::string& path) {
  if (object.at("kind") != manifest_kind || object.at("version") != manifest_version) {
    fail(ErrorCode::input, "{}: is not a manifest of token shards of version {}", path,
         manifest_version);
  }
  ShardManifest manifest{.making = making_of(object.at("making"))};
  for (const json& shard : object.at("shards")) manifest.shards.push_back(shard_of(shard));
  manifest.complete = object.at("complete");
  return manifest;
}

void check_shards(const ShardManifest& manifest, const std::string& path) {
  // Sums of many shards stay in the range of int64.
  constexpr std::int64_t most = std::int64_t{1} << 40;
  for (const ShardManifest::Shard& shard : manifest.shards) {
    const ShardManifest::Position& end = shard.end;
    const bool counts = shard.tokens >= 0 && shard.tokens < most && shard.documents >= 0 &&
                        shard.documents <= shard.tokens;
    const bool ends = end.input >= 0 && end.input < std::ssize(manifest.making.inputs) &&
                      end.offset >= 0 && end.line >= 1 && end.column >= 1 && end.tokens >= 0;
    if (counts && ends && std::filesystem::path(shard.file).filename() == shard.file) continue;
    fail(ErrorCode::input, "{}: is damaged: the entry of shard '{}' is impossible", path,
         shard.file);
  }
}

}  // namespace

std::int64_t ShardManifest::tokens() const {
  std::int64_t sum = 0;
  for (const Shard& shard : shards) sum += shard.tokens;
  return sum;
}

std::int64_t ShardManifest::documents() const {
  std::int64_t sum = 0;
  for (const Shard& shard : shards) sum += shard.documents;
  return sum;
}

std::string name_of(ShardFormat format) {
  return format == ShardFormat::megatron ? "megatron" : "llmc";
}

ShardManifest parse_shard_manifest(std::string_view text, const std::string& path) {
  const json object = parse_json_object(text, path);
  try {
    ShardManifest manifest = manifest_of(object, path);
    check_shards(manifest, path);
    return manifest;
  } catch (const json::exception& error) {
    fail(ErrorCode::input, "{}: is not a manifest of token shards: {}", path,
         exception_text(error));
  }
}

std::string to_text(const ShardManifest& manifest) {
  ordered_json shards = ordered_json::array();
  for (const ShardManifest::Shard& shard : manifest.shards) shards.push_back(to_json(shard));
  const ordered_json object = {{"kind", manifest_kind},
                               {"version", manifest_version},
                               {"complete", manifest.complete},
                               {"tokens", manifest.tokens()},
                               {"documents", manifest.documents()},
                               {"making", to_json(manifest.making)},
                               {"shards", std::move(shards)}};
  // File names may not be UTF-8.
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::optional<ShardManifest> read_shard_manifest(const std::filesystem::path& directory) {
  constexpr Bytes bytes_max = gibibyte;
  const std::filesystem::path path = directory / file_name;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return parse_shard_manifest(read_text_file(path, bytes_max), path.string());
}

void remove_shard_manifest(const std::filesystem::path& directory) {
  std::filesystem::remove(directory / file_name);
}

void write_shard_manifest(const std::filesystem::path& directory, const ShardManifest& manifest) {
  write_text_file(directory / file_name, to_text(manifest));
}

}  // namespace dstrain::data
