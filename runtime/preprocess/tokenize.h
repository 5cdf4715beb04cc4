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
  bool overwrite = false;  ///< replace existing shards
  int workers = 1;
  Bytes piece_bytes = mebibyte;  ///< text that a worker encodes at once, approximately
};

/// The progress of tokenize().
struct TokenizeProgress {
  std::int64_t consumed = 0;  ///< bytes of the inputs on disk
  std::int64_t tokens = 0;
  std::int64_t documents = 0;
  std::int64_t shards = 0;  ///< complete shards
};

/// Writes the tokens of the inputs' documents, in order, to shards in a directory: tokens_000000
/// and so on, each with `shard_tokens` tokens (for Megatron, with the documents that reach that
/// number) except the last, and the manifest. Shards are the same for any number of workers.
/// Continues after the last complete shard if there is a manifest with the same settings. Memory:
/// about 50 MB per worker, plus that of encoding the largest document.
///
/// Calls `report` after each piece. Throws Error{input} for a directory that holds other files, or
/// that another process writes to, and for errors in an input; Error{io}.
data::ShardManifest tokenize(const std::vector<InputFile>& inputs,
                             const data::TextEncoder& encoder,
                             const std::filesystem::path& directory,
                             const TokenizeOptions& options,
                             FunctionRef<void(const TokenizeProgress&)> report);

}  // namespace dstrain::preprocess
