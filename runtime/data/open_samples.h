#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/label.h"
#include "runtime/base/pair_tokens.h"
#include "runtime/data/record_kind.h"
#include "runtime/data/sample_source.h"
#include "runtime/data/text_encoder.h"

namespace dstrain::data {

/// Options for making samples of a file.
struct SampleOptions {
  SampleSizes sizes;              ///< with sources for an encoder-decoder, whose data is pairs
  std::int64_t vocabulary = 0;    ///< V of the model: every id must be below it
  bool packing = true;            ///< for JSON lines: several records in a sample
  RecordOptions records{};        ///< for JSON lines
  std::filesystem::path cache{};  ///< directory for cached tokens; empty: cache_directory()
  /// Weights of three parts to split it into (`split_samples`), in whole documents if it is a
  /// stream that knows them, as in Megatron; empty: no split.
  std::vector<double> split{};
  PairTokens pair_tokens{};  ///< for pairs
};

/// Whether a file holds tokens rather than text, by its name, so that no tokenizer is needed.
bool holds_tokens(const std::string& path);

/// Opens training data of any kind, chosen by its name: shards (`token_shards.h`), an indexed
/// Megatron set (the prefix, or either of its files), llm.c's `.bin`, JSON lines (`is_json_name`),
/// else UTF-8 text. An encoder-decoder only takes JSON lines of pairs (`pair_samples.h`). Tokens of
/// JSON lines, and of text unless its bytes are its tokens, are made once and cached
/// (`token_cache.h`). Throws Error{input} naming the file and the place, and Error{io}.
std::unique_ptr<SampleSource> open_samples(const std::string& path,
                                           const TextEncoder& encoder,
                                           const SampleOptions& options);

}  // namespace dstrain::data
