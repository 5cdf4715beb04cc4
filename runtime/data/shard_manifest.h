#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::data {

/// What token files the shards are: llm.c's `.bin`, or Megatron's `.bin` with `.idx`.
enum class ShardFormat { llmc, megatron };

/// "llmc", "megatron".
std::string name_of(ShardFormat format);

/// OUT/manifest.json, which `dstrain tokenize` keeps beside the shards that it writes: what they
/// were made of, and from where to go on. A shard that it names is whole.
struct ShardManifest {
  struct Input {
    std::string path;
    std::int64_t bytes = 0;
    std::int64_t modified_ns = 0;  ///< since 1970
    bool operator==(const Input&) const = default;
  };
  /// Where the tokens of a shard end: `tokens` after the beginning of a piece of an input.
  struct Position {
    std::int64_t input = 0;
    std::int64_t offset = 0;  ///< bytes of decompressed content
    std::int64_t line = 1;
    std::int64_t tokens = 0;
  };
  struct Shard {
    std::string file;  ///< in the directory of the manifest
    std::int64_t tokens = 0;
    std::int64_t documents = 0;  ///< that end in it
    Position end{};
  };
  /// What the tokens depend on. Two manifests of the same making hold the same tokens.
  struct Making {
    std::string tokenizer;  ///< TextEncoder::identity()
    std::int64_t vocabulary = 0;
    ShardFormat format = ShardFormat::llmc;
    std::int64_t shard_tokens = 0;
    std::string text_column = "text";
    bool end_of_text = true;
    std::vector<Input> inputs{};
    bool operator==(const Making&) const = default;
  };

  Making making;
  std::vector<Shard> shards{};
  bool complete = false;

  /// Of all shards.
  [[nodiscard]] std::int64_t tokens() const;
  [[nodiscard]] std::int64_t documents() const;
};

/// The text of a manifest, and back. `path` is for messages. Throws Error{input}, also for numbers
/// below zero and for shards that lie in another directory.
ShardManifest parse_shard_manifest(std::string_view text, const std::string& path);
std::string to_text(const ShardManifest& manifest);

/// Null when the directory has no manifest. Throws Error{input} for one that cannot be read.
std::optional<ShardManifest> read_shard_manifest(const std::filesystem::path& directory);

/// Removes the directory's manifest, if there is one.
void remove_shard_manifest(const std::filesystem::path& directory);

/// Replaces the directory's manifest as a whole. Throws Error{io}.
void write_shard_manifest(const std::filesystem::path& directory, const ShardManifest& manifest);

}  // namespace dstrain::data
