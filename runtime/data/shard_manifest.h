#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::data {

/// The kind of token files of the shards: llm.c's `.bin`, or Megatron's `.bin` with `.idx`.
enum class ShardFormat { llmc, megatron };

/// Returns "llmc", "megatron".
std::string name_of(ShardFormat format);

/// OUT/manifest.json, which `dstrain tokenize` writes beside its shards: the source of the shards,
/// and where to continue. A shard that it names is complete.
struct ShardManifest {
  struct Input {
    std::string path;
    std::int64_t bytes = 0;
    std::int64_t modified_ns = 0;  ///< since 1970
    bool operator==(const Input&) const = default;
  };
  /// The end of a shard's tokens: `tokens` after the beginning of a piece of an input.
  struct Position {
    std::int64_t input = 0;
    std::int64_t offset = 0;  ///< bytes of decompressed content
    std::int64_t line = 1;
    std::int64_t column = 1;
    std::int64_t tokens = 0;
  };
  struct Shard {
    std::string file;  ///< in the manifest's directory
    std::int64_t tokens = 0;
    std::int64_t documents = 0;  ///< number that end in it
    Position end{};
  };
  /// The settings that determine the tokens. Two manifests with equal settings hold the same
  /// tokens.
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

  /// Returns the tokens of all shards.
  [[nodiscard]] std::int64_t tokens() const;
  [[nodiscard]] std::int64_t documents() const;
};

/// Parses a manifest; to_text() is the inverse. `path` is for messages. Throws Error{input}, also
/// for negative numbers and for shards in another directory.
ShardManifest parse_shard_manifest(std::string_view text, const std::string& path);
std::string to_text(const ShardManifest& manifest);

/// Returns nothing if the directory has no manifest. Throws Error{input} for one that cannot be
/// read.
std::optional<ShardManifest> read_shard_manifest(const std::filesystem::path& directory);

/// Removes the directory's manifest, if there is one.
void remove_shard_manifest(const std::filesystem::path& directory);

/// Replaces the directory's manifest atomically. Throws Error{io}.
void write_shard_manifest(const std::filesystem::path& directory, const ShardManifest& manifest);

}  // namespace dstrain::data
