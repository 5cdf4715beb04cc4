#include "runtime/model/hf_directory.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <unordered_set>

#include <unistd.h>

#include <climits>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/printable.h"
#include "runtime/model/hf_index.h"
#include "runtime/model/other_formats.h"

namespace dstrain::model {
namespace {

constexpr Bytes index_bytes_max = 64 * mebibyte;

/// The target of a link as Hugging Face's download cache makes them, or nothing.
std::string cache_target(int directory, const std::string& name) {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t size = ::readlinkat(directory, name.c_str(), buffer.data(), buffer.size());
  if (size < 0) return {};
  const std::string_view target(buffer.data(), static_cast<std::size_t>(size));
  constexpr std::string_view blobs = "../../blobs/";
  if (!target.starts_with(blobs)) return {};
  const std::string_view hash = target.substr(blobs.size());
  const bool plain = !hash.empty() && std::all_of(hash.begin(), hash.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  return plain ? std::string(target) : std::string();
}

bool is_missing(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::status(path, ignored).type() == std::filesystem::file_type::not_found;
}

safetensors::File open_file(int directory, const std::string& name, const std::string& path) {
  return {open_hf_file(directory, name, path), path};
}

/// Every tensor of the shard is where the index has it, and none that it has there is missing.
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

std::vector<safetensors::File> open_shards(int directory, const std::filesystem::path& root) {
  const std::string index = (root / hf_index_file).string();
  const ShardMap shard_of = parse_hf_index(read_text_file(index, index_bytes_max), index);
  std::unordered_set<std::string> opened;
  std::vector<safetensors::File> files;
  for (const auto& [tensor, shard] : shard_of) {
    if (!opened.insert(shard).second) continue;
    const std::string path = (root / shard).string();
    if (is_missing(path)) {
      fail(ErrorCode::input, "{}: no such file, but the index names it", printable(path));
    }
    files.push_back(open_file(directory, shard, path));
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

UniqueFd open_hf_file(int directory, const std::string& name, const std::string& path) {
  const std::string cached = cache_target(directory, name);
  return open_beneath(directory, cached.empty() ? name : cached, path);
}

std::vector<safetensors::File> open_hf_directory(const std::string& directory) {
  const std::filesystem::path root(directory);
  const UniqueFd fd = open_directory(root);
  const std::filesystem::path single = root / "model.safetensors";
  if (!is_missing(single)) {
    std::vector<safetensors::File> files;
    files.push_back(open_file(fd.get(), single.filename().string(), single.string()));
    return files;
  }
  if (!is_missing(root / hf_index_file)) return open_shards(fd.get(), root);
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
