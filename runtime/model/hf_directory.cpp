#include "runtime/model/hf_directory.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <unordered_set>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/model/hf_index.h"
#include "runtime/model/other_formats.h"
#include "runtime/os/file.h"

namespace dstrain::model {
namespace {

constexpr Bytes index_bytes_max = 64 * mebibyte;

safetensors::File open_file(const std::string& path) {
  return {open_regular(path), path};
}

/// Checks that the shard holds exactly the tensors that the index lists for it.
void check_shard(const safetensors::File& file,
                 const std::string& shard,
                 const ShardMap& shard_of) {
  std::unordered_set<std::string_view> present;
  for (const safetensors::Entry& entry : file.entries()) {
    const auto found = shard_of.find(entry.name);
    if (found == shard_of.end() || found->second != shard) {
      fail(ErrorCode::input, "{}: holds tensor '{}', which the index {}", file.name(),
           printable(entry.name),
           found == shard_of.end() ? "does not name" : "has in " + printable(found->second));
    }
    present.insert(entry.name);
  }
  for (const auto& [tensor, name] : shard_of) {
    if (name == shard && present.count(tensor) == 0) {
      fail(ErrorCode::input, "{}: has no tensor '{}', which the index says it holds", file.name(),
           printable(tensor));
    }
  }
}

std::vector<safetensors::File> open_shards(const std::filesystem::path& root) {
  const std::string index = (root / hf_index_file).string();
  const ShardMap shard_of = parse_hf_index(read_text_file(index, index_bytes_max), index);
  std::unordered_set<std::string> opened;
  std::vector<safetensors::File> files;
  for (const auto& [tensor, shard] : shard_of) {
    if (!opened.insert(shard).second) continue;
    const std::string path = (root / shard).string();
    if (!is_there(path)) {
      fail(ErrorCode::input, "{}: no such file, but the index names it", printable(path));
    }
    files.push_back(open_file(path));
    check_shard(files.back(), shard, shard_of);
  }
  return files;
}

[[noreturn]] void fail_without_weights(const std::filesystem::path& root) {
  const std::string other = explain_other_format(root);
  if (!other.empty()) fail(ErrorCode::input, "{}", other);
  fail(ErrorCode::input,
       "{}: holds neither model.safetensors nor model.safetensors.index.json; "
       "a Hugging Face model directory is needed",
       root.string());
}

}  // namespace

std::vector<safetensors::File> open_hf_directory(const std::string& directory) {
  const std::filesystem::path root(directory);
  if (!is_there(root)) fail(ErrorCode::input, "{}: missing", directory);
  const std::filesystem::path single = root / "model.safetensors";
  if (is_there(single)) {
    std::vector<safetensors::File> files;
    files.push_back(open_file(single.string()));
    return files;
  }
  if (is_there(root / hf_index_file)) return open_shards(root);
  fail_without_weights(root);
}

bool stores_tensor(const std::string& directory, std::string_view name) {
  const std::vector<safetensors::File> files = open_hf_directory(directory);
  return std::ranges::any_of(files, [&](const safetensors::File& file) {
    return std::ranges::any_of(file.entries(),
                               [&](const safetensors::Entry& entry) { return entry.name == name; });
  });
}

}  // namespace dstrain::model
