#include "runtime/data/token_shards.h"

#include <algorithm>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/data/content_digest.h"
#include "runtime/data/foreign_format.h"
#include "runtime/data/megatron_set.h"
#include "runtime/data/shard_manifest.h"
#include "runtime/data/token_file.h"
#include "runtime/os/file.h"

namespace dstrain::data {
namespace {

namespace fs = std::filesystem;

bool is_pattern(const std::string& path) {
  std::error_code ignored;
  return path.find_first_of("*?[") != std::string::npos && path.ends_with(".bin") &&
         !fs::exists(path, ignored);
}

std::vector<std::string> files_of_manifest(const std::string& directory) {
  const auto manifest = read_shard_manifest(directory);
  if (!manifest) {
    fail(ErrorCode::input,
         "{}: is a directory without the manifest of token shards, which dstrain tokenize writes{}",
         directory, directory_remedy(directory));
  }
  if (!manifest->complete) {
    fail(ErrorCode::input,
         "{}: its shards are incomplete; rerun the same dstrain tokenize to finish them",
         directory);
  }
  std::vector<std::string> paths;
  for (const ShardManifest::Shard& shard : manifest->shards) {
    paths.push_back(fs::path(directory) / shard.file);
  }
  return paths;
}

}  // namespace

bool names_shards(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) || is_pattern(path);
}

TokenShards::TokenShards(const std::string& path, std::int64_t vocabulary) : TokenStream(path) {
  for (const std::string& file :
       is_pattern(path) ? paths_matching(path) : files_of_manifest(path)) {
    if (const auto prefix = find_megatron_prefix(file)) {
      shards_.push_back(std::make_unique<MegatronSet>(*prefix, vocabulary));
    } else {
      shards_.push_back(std::make_unique<TokenFile>(file, vocabulary));
    }
    begins_.push_back(begins_.back() + shards_.back()->size());
  }
}

std::int64_t TokenShards::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& shard : shards_) bytes += shard->bytes();
  return bytes;
}

Checksum TokenShards::digest(std::int64_t blocks) const {
  const std::int64_t share = std::max<std::int64_t>(2, blocks / std::ssize(shards_));
  std::vector<Checksum> digests;
  digests.reserve(shards_.size());
  for (const auto& shard : shards_) digests.push_back(shard->digest(share));
  return combined(digests);
}

void TokenShards::read(std::int64_t begin, std::span<std::int32_t> tokens) const {
  auto shard =
      static_cast<std::size_t>(std::ranges::upper_bound(begins_, begin) - begins_.begin() - 1);
  for (; !tokens.empty(); ++shard) {
    const auto count =
        static_cast<std::size_t>(std::min(begins_.at(shard + 1) - begin, std::ssize(tokens)));
    shards_.at(shard)->read(begin - begins_[shard], tokens.first(count));
    tokens = tokens.subspan(count);
    begin += static_cast<std::int64_t>(count);
  }
}

}  // namespace dstrain::data
