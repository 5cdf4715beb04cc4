#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/units.h"
#include "runtime/data/shard_manifest.h"

namespace dstrain::preprocess {

/// One shard that is being written, beside its name until it is whole. Throws Error{io}.
class ShardWriter {
 public:
  ShardWriter() = default;
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;
  virtual ~ShardWriter() = default;

  virtual void add(std::span<const std::int32_t> ids) = 0;
  virtual void end_document() = 0;
  /// The files are whole, on the disk and have their names when this returns.
  virtual void finish() = 0;
};

/// The most tokens that a shard of a format can say it has; of Megatron's, that a document can.
inline constexpr std::int64_t shard_tokens_max = 2147483647;

/// The size of PREFIX.bin with so many tokens.
Bytes shard_bytes(data::ShardFormat format, std::int64_t vocabulary, std::int64_t tokens);

/// PREFIX.bin of llm.c (`data/token_file.h`), or PREFIX.bin and PREFIX.idx of Megatron
/// (megatron/core/datasets/indexed_dataset.py): a document is a sequence, ids are u16 below a
/// vocabulary of 65500, else i32.
std::unique_ptr<ShardWriter> create_shard(data::ShardFormat format,
                                          const std::filesystem::path& prefix,
                                          std::int64_t vocabulary);

}  // namespace dstrain::preprocess
