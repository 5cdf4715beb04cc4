#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/units.h"
#include "runtime/data/shard_manifest.h"

namespace dstrain::preprocess {

/// Writes one shard, under a temporary name until it is complete. Throws Error{io}.
class ShardWriter {
 public:
  ShardWriter() = default;
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;
  virtual ~ShardWriter() = default;

  virtual void add(std::span<const std::int32_t> ids) = 0;
  virtual void end_document() = 0;
  /// Completes the files, flushes them to disk and gives them their names.
  virtual void finish() = 0;
};

/// The largest number of tokens that the format of a shard can record; for Megatron, of a document.
inline constexpr std::int64_t shard_tokens_max = 2147483647;

/// Returns the size of PREFIX.bin with `tokens` tokens.
Bytes shard_bytes(data::ShardFormat format, std::int64_t vocabulary, std::int64_t tokens);

/// Creates PREFIX.bin for llm.c (`data/token_file.h`), or PREFIX.bin and PREFIX.idx for Megatron
/// (megatron/core/datasets/indexed_dataset.py): a document is a sequence, ids are u16 below a
/// vocabulary of 65500, else i32.
std::unique_ptr<ShardWriter> create_shard(data::ShardFormat format,
                                          const std::filesystem::path& prefix,
                                          std::int64_t vocabulary);

}  // namespace dstrain::preprocess
