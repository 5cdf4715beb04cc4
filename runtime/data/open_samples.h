#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/label.h"
#include "runtime/data/sample_source.h"
#include "runtime/data/text_encoder.h"

namespace dstrain::data {

/// How a file becomes samples.
struct SampleOptions {
  SampleSizes sizes;              ///< with sources for an encoder-decoder, which reads pairs
  std::int64_t vocabulary = 0;    ///< V of the model: every id must be below it
  bool packing = true;            ///< of JSON lines: several records in a sample
  std::filesystem::path cache{};  ///< where made tokens are kept; empty: cache_directory()
  /// Three weights of parts to split it into (`split_samples`), in whole documents where it is a
  /// stream that knows them, as Megatron does; empty: it is not split.
  std::vector<double> split{};
  PairTokens pair_tokens{};  ///< of pairs
};

/// Whether a file holds tokens rather than text, as its name tells: no tokenizer is asked.
bool holds_tokens(const std::string& path);

/// Opens training data of any kind, which its name tells: shards (`token_shards.h`), an indexed
/// Megatron set (the prefix, or
/// either of its files), llm.c's `.bin`, JSON lines (`is_json_name`), else UTF-8
/// text. An encoder-decoder takes JSON lines of pairs (`pair_samples.h`) alone. Tokens of JSON
/// lines, and of text unless its bytes are its tokens, are made once and kept in the cache
/// (`token_cache.h`). Throws Error{input} naming the file and the place, and Error{io}.
std::unique_ptr<SampleSource> open_samples(const std::string& path,
                                           const TextEncoder& encoder,
                                           const SampleOptions& options);

}  // namespace dstrain::data
