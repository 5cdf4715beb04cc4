#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/token_stream.h"

namespace dstrain::data {

/// Whether a path means several token files: a directory written by `dstrain tokenize`, or a shell
/// pattern for files of llm.c, "data/*.bin".
bool names_shards(const std::string& path);

/// Concatenates token files into one stream.
class TokenShards : public TokenStream {
 public:
  /// Opens a path that names shards; ids must be below `vocabulary`. Throws Error{input}, also if
  /// not all shards are written yet.
  TokenShards(const std::string& path, std::int64_t vocabulary);

  [[nodiscard]] std::int64_t bytes() const override;
  [[nodiscard]] Checksum digest(std::int64_t blocks) const override;
  [[nodiscard]] bool is_text() const override { return false; }
  [[nodiscard]] std::int64_t size() const override { return begins_.back(); }
  void read(std::int64_t begin, std::span<std::int32_t> tokens) const override;

 private:
  std::vector<std::unique_ptr<TokenStream>> shards_;
  std::vector<std::int64_t> begins_{0};  ///< of each shard in the stream, then its end
};

}  // namespace dstrain::data
