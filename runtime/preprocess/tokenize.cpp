#include "runtime/preprocess/tokenize.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include <fcntl.h>
#include <sys/file.h>

#include "runtime/base/error.h"
#include "runtime/os/file.h"
#include "runtime/os/shared_place.h"
#include "runtime/preprocess/encode_piece.h"
#include "runtime/preprocess/input_reader.h"
#include "runtime/preprocess/ordered_work.h"
#include "runtime/preprocess/shard_writer.h"

namespace dstrain::preprocess {
namespace {

namespace fs = std::filesystem;
using data::ShardFormat;
using data::ShardManifest;

/// Locks a directory for the process that writes to it, until the process ends.
UniqueFd lock_directory(const fs::path& directory) {
  const std::error_code error = make_directories(directory);
  if (error) {
    fail(ErrorCode::input, "{}: cannot be created: {}", directory.string(), error.message());
  }
  UniqueFd lock = open_directory(directory);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) fail_errno(errno, "lock " + directory.string());
  fail(ErrorCode::input, "{}: another dstrain tokenize writes to it", directory.string());
}

ShardManifest::Making making_of(const std::vector<InputFile>& inputs,
                                const data::TextEncoder& encoder,
                                const TokenizeOptions& options) {
  ShardManifest::Making making{.tokenizer = encoder.identity(),
                               .vocabulary = encoder.vocabulary(),
                               .format = options.format,
                               .shard_tokens = options.shard_tokens,
                               .text_column = options.text_column,
                               .end_of_text = options.end_of_text};
  for (const InputFile& input : inputs) {
    making.inputs.push_back({input.path, input.bytes, input.modified_ns});
  }
  return making;
}

/// Describes the difference for the user.
std::string difference(const ShardManifest::Making& was, const ShardManifest::Making& is) {
  if (was.tokenizer != is.tokenizer) return "of another tokenizer";
  if (was.format != is.format) return fmt::format("in the format {}", name_of(was.format));
  if (was.shard_tokens != is.shard_tokens) {
    return fmt::format("with {} tokens a shard", was.shard_tokens);
  }
  if (was.text_column != is.text_column) return fmt::format("of the column {}", was.text_column);
  if (was.end_of_text != is.end_of_text) {
    return was.end_of_text ? "with end-of-text tokens" : "without end-of-text tokens";
  }
  for (std::size_t i = 0; i < std::min(was.inputs.size(), is.inputs.size()); ++i) {
    if (was.inputs[i].path != is.inputs[i].path) {
      return fmt::format("of {} where {} is now", was.inputs[i].path, is.inputs[i].path);
    }
    if (was.inputs[i] != is.inputs[i]) {
      return fmt::format("of {} as it was before it was changed", is.inputs[i].path);
    }
  }
  return fmt::format("of {} files, not {}", was.inputs.size(), is.inputs.size());
}

constexpr std::string_view shard_prefix = "tokens_";

/// Returns the shards in a directory, complete or not.
std::vector<fs::path> shard_files(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename().string().starts_with(shard_prefix)) files.push_back(entry.path());
  }
  return files;
}

/// Removes the manifest first: shards that it does not name are unused.
void remove_shards(const fs::path& directory) {
  data::remove_shard_manifest(directory);
  for (const fs::path& file : shard_files(directory)) fs::remove(file);
}

/// Returns the manifest to continue: that of the directory, or a new one.
ShardManifest begin_manifest(const fs::path& directory, ShardManifest::Making making) {
  auto found = data::read_shard_manifest(directory);
  if (found && found->shards.empty()) {
    remove_shards(directory);
    found.reset();
  }
  if (!found) {
    if (const auto files = shard_files(directory); !files.empty()) {
      fail(ErrorCode::input,
           "{}: exists, but no manifest describes it; name another directory, or remove such "
           "files: --overwrite_output_dir",
           files.front().string());
    }
    ShardManifest manifest{.making = std::move(making)};
    write_shard_manifest(directory, manifest);
    return manifest;
  }
  if (found->making != making) {
    fail(ErrorCode::input,
         "{}: holds tokens {}; name another directory, or start anew: --overwrite_output_dir",
         directory.string(), difference(found->making, making));
  }
  for (const ShardManifest::Shard& shard : found->shards) {
    std::error_code error;
    const auto bytes = fs::file_size(directory / shard.file, error);
    if (!error &&
        static_cast<Bytes>(bytes) == shard_bytes(making.format, making.vocabulary, shard.tokens)) {
      continue;
    }
    fail(ErrorCode::input, "{}: {}, and the manifest names it; start anew: --overwrite_output_dir",
         (directory / shard.file).string(), error ? "is missing" : "is damaged");
  }
  return std::move(*found);
}

/// Writes the tokens of pieces to shards.
class ShardSink {
 public:
  ShardSink(fs::path directory, ShardManifest manifest)
      : directory_(std::move(directory)),
        manifest_(std::move(manifest)),
        limit_(manifest_.making.shard_tokens) {
    if (!manifest_.shards.empty()) position_ = manifest_.shards.back().end;
    resumed_tokens_ = position_.tokens;
    written_.tokens = manifest_.tokens();
    written_.documents = manifest_.documents();
    written_.shards = std::ssize(manifest_.shards);
  }

  /// Returns the beginning of the first piece.
  [[nodiscard]] InputPosition first_position() const {
    return {position_.input, position_.offset, position_.line, position_.column};
  }

  void take(const InputPiece& piece, const EncodedDocuments& encoded) {
    const std::span<const std::int32_t> ids(encoded.ids);
    position_ = {piece.position.input, piece.position.offset, piece.position.line,
                 piece.position.column, std::min(resumed_tokens_, std::ssize(ids))};
    resumed_tokens_ -= position_.tokens;
    written_.consumed = piece.consumed;
    std::int64_t& at = position_.tokens;
    auto end = at == 0 ? encoded.document_ends.begin()
                       : std::ranges::upper_bound(encoded.document_ends, at);
    while (at < std::ssize(ids) || end != encoded.document_ends.end()) {
      const std::int64_t until = end == encoded.document_ends.end() ? std::ssize(ids) : *end;
      const std::int64_t count = std::min(until - at, room());
      add(ids.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count)));
      at += count;
      for (; end != encoded.document_ends.end() && *end == at; ++end) end_document();
      close_full_shard();
    }
  }

  ShardManifest finish() {
    if (shard_) close_shard();
    if (manifest_.shards.empty()) fail(ErrorCode::input, "the inputs hold no text");
    manifest_.complete = true;
    write_shard_manifest(directory_, manifest_);
    return std::move(manifest_);
  }
  [[nodiscard]] const TokenizeProgress& written() const { return written_; }

 private:
  [[nodiscard]] bool is_megatron() const {
    return manifest_.making.format == ShardFormat::megatron;
  }
  /// Returns how many more tokens the shard may take at once: documents are not cut for Megatron.
  [[nodiscard]] std::int64_t room() const {
    return is_megatron() ? std::numeric_limits<std::int64_t>::max() : limit_ - shard_info_.tokens;
  }
  void open_shard() {
    const std::string name = fmt::format("{}{:06}", shard_prefix, manifest_.shards.size());
    shard_info_ = {.file = name + ".bin"};
    shard_ = create_shard(manifest_.making.format, directory_ / name, manifest_.making.vocabulary);
  }
  void add(std::span<const std::int32_t> ids) {
    if (ids.empty()) return;
    if (!shard_) open_shard();
    shard_->add(ids);
    inside_document_ = true;
    shard_info_.tokens += std::ssize(ids);
    written_.tokens += std::ssize(ids);
  }
  void end_document() {
    if (!inside_document_) return;
    inside_document_ = false;
    // Its last token may have been the last of a closed llm.c shard.
    if (shard_) {
      shard_->end_document();
      ++shard_info_.documents;
    }
    ++written_.documents;
  }
  void close_full_shard() {
    const bool is_full = shard_ && shard_info_.tokens >= limit_;
    if (is_full && !(is_megatron() && inside_document_)) close_shard();
  }
  void close_shard() {
    shard_->finish();
    shard_.reset();
    shard_info_.end = position_;
    manifest_.shards.push_back(std::move(shard_info_));
    shard_info_ = {};
    ++written_.shards;
    write_shard_manifest(directory_, manifest_);
  }

  fs::path directory_;
  ShardManifest manifest_;
  std::int64_t limit_;
  std::unique_ptr<ShardWriter> shard_;  ///< the shard that is being written, once it has a token
  ShardManifest::Shard shard_info_;     ///< describes shard_
  ShardManifest::Position position_{};  ///< end of the tokens that are in shards
  std::int64_t resumed_tokens_ = 0;     ///< tokens of the first piece that are in shards already
  bool inside_document_ = false;
  TokenizeProgress written_;
};

}  // namespace

ShardManifest tokenize(const std::vector<InputFile>& inputs,
                       const data::TextEncoder& encoder,
                       const fs::path& directory,
                       const TokenizeOptions& options,
                       FunctionRef<void(const TokenizeProgress&)> report) {
  const UniqueFd lock = lock_directory(directory);
  if (options.overwrite) remove_shards(directory);
  ShardManifest manifest = begin_manifest(directory, making_of(inputs, encoder, options));
  if (manifest.complete) return manifest;
  ShardSink sink(directory, std::move(manifest));
  const auto cut = [&](std::string_view text) {
    return encoder.safe_cut(text);
  };
  InputReader reader(inputs, cut,
                     {options.text_column, sink.first_position(), options.piece_bytes});
  const DocumentOptions document{options.text_column, options.end_of_text};
  const auto next = [&] {
    return reader.next();
  };
  const auto encode = [&](InputPiece& piece) {
    return encode_piece(piece, inputs[static_cast<std::size_t>(piece.position.input)], encoder,
                        document);
  };
  const auto take = [&](InputPiece& piece, EncodedDocuments& encoded) {
    sink.take(piece, encoded);
    report(sink.written());
  };
  OrderedWork<InputPiece, EncodedDocuments>(options.workers, {next, encode, take}).run();
  return sink.finish();
}

}  // namespace dstrain::preprocess
