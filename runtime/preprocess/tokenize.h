#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/base/units.h"
#include "runtime/data/shard_manifest.h"
#include "runtime/data/text_encoder.h"
#include "runtime/preprocess/input_file.h"

namespace dstrain::preprocess {

struct TokenizeOptions {
  data::ShardFormat format = data::ShardFormat::llmc;
  std::int64_t shard_tokens = 100'000'000;  ///< 1 to shard_tokens_max
  std::string text_column = "text";
  bool end_of_text = true;
  bool overwrite = false;  ///< whether shards that are there make room
  int workers = 1;
  Bytes piece_bytes = mebibyte;  ///< of text that a worker encodes at once, about
};

/// How far it has come.
struct TokenizeProgress {
  std::int64_t consumed = 0;  ///< bytes of the inputs on the disk
  std::int64_t tokens = 0;
  std::int64_t documents = 0;
  std::int64_t shards = 0;  ///< whole ones
};

/// Writes the tokens of the inputs' documents, in their order, to shards in a directory:
/// tokens_000000 and so on, each of `shard_tokens` tokens (of Megatron's format, of the documents
/// that reach it) but the last, and the manifest. Shards are the same for any number of workers.
/// Goes on after the last whole shard where a manifest of the same making is there. Memory: some 50
/// MB a worker, and that of encoding the largest document.
///
/// `report` is told after each piece. Throws Error{input} for a directory that holds something
/// else, that another process writes to, and for what is wrong with an input; Error{io}.
data::ShardManifest tokenize(const std::vector<InputFile>& inputs,
                             const data::TextEncoder& encoder,
                             const std::filesystem::path& directory,
                             const TokenizeOptions& options,
                             FunctionRef<void(const TokenizeProgress&)> report);

}  // namespace dstrain::preprocess
