#include "runtime/data/open_samples.h"

#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/log.h"
#include "runtime/data/foreign_format.h"
#include "runtime/data/megatron_set.h"
#include "runtime/data/pair_samples.h"
#include "runtime/data/record_samples.h"
#include "runtime/data/stream_samples.h"
#include "runtime/data/token_cache.h"
#include "runtime/data/token_file.h"
#include "runtime/data/token_shards.h"
#include "runtime/data/tokenize_file.h"
#include "runtime/os/mapped_file.h"

namespace dstrain::data {
namespace {

using Tokenize = FunctionRef<void(const std::filesystem::path& target)>;

TokenSet tokens_of(const TextFile& file,
                   const std::string& method,
                   const SampleOptions& options,
                   Tokenize tokenize) {
  const std::filesystem::path directory = options.cache.empty() ? cache_directory() : options.cache;
  return cached_tokens(
      directory, token_key(file.bytes, method), [&](const std::filesystem::path& target) {
        log_info(fmt::format("tokenizing {} (cached in {})", file.path, directory.string()));
        tokenize(target);
      });
}

/// Returns the first token of each part of a split; empty without a split.
std::vector<std::int64_t> cut_records(const TokenSet& set, std::span<const double> split) {
  if (split.empty()) return {};
  const auto [training, held_out] = split_samples(set.records(), split);
  return {0, set.start(training.count), set.start(training.count + held_out.count),
          set.ids().size()};
}

RecordFile record_file(const TextFile& file, const SampleOptions& options) {
  return {file.path, std::ssize(file.bytes), checksum_of(file.bytes), options.vocabulary};
}

std::unique_ptr<SampleSource> open_json_lines(const TextFile& file,
                                              const TextEncoder& encoder,
                                              const SampleOptions& options) {
  // Increase the number when records are refused or read differently.
  const std::string method =
      fmt::format("json lines 4 {} {}", describe(options.records), encoder.identity());
  TokenSet set = tokens_of(file, method, options, [&](const std::filesystem::path& target) {
    tokenize_records(file, encoder, options.records, target);
  });
  RecordFile origin = record_file(file, options);
  const RecordKind kind = set.kind();
  std::unique_ptr<SampleSource> source;
  if (options.packing && kind == RecordKind::text) {
    std::vector<std::int64_t> cuts = cut_records(set, options.split);
    source = std::make_unique<StreamSamples>(
        std::make_unique<RecordStream>(std::move(origin), std::move(set), true), options.sizes,
        StreamSamples::Tail::padded, std::move(cuts));
  } else {
    source = std::make_unique<RecordSamples>(std::move(origin), std::move(set), options.sizes,
                                             options.packing ? RecordSamples::Packing::many_per_row
                                                             : RecordSamples::Packing::one_per_row);
  }
  source->set_packing(options.packing);
  source->add_records({file.path, kind});
  return source;
}

std::unique_ptr<TokenStream> open_stream(const std::string& path,
                                         const TextEncoder& encoder,
                                         const SampleOptions& options) {
  if (encoder.is_bytes() || path.ends_with(".bin")) {
    return std::make_unique<TokenFile>(path, options.vocabulary);
  }
  const MappedFile file(path);
  const TextFile text{path, file.bytes()};
  TokenSet set =
      tokens_of(text, fmt::format("text {}", encoder.identity()), options,
                [&](const std::filesystem::path& target) { tokenize_text(text, encoder, target); });
  return std::make_unique<RecordStream>(record_file(text, options), std::move(set), false);
}

/// Whether a text begins like llm.c's token files.
bool begins_llmc(std::string_view text) {
  std::int32_t magic = 0;
  if (text.size() >= sizeof magic) std::memcpy(&magic, text.data(), sizeof magic);
  return magic == llmc_u16.magic || magic == llmc_u32.magic;
}

std::unique_ptr<SampleSource> open_pairs(const std::string& path, const SampleOptions& options) {
  if (!is_json_name(path)) {
    fail(ErrorCode::input,
         "{}: an encoder-decoder is trained on pairs: JSON lines (.jsonl) with the token ids of "
         "each as {{\"input_ids\": [...], \"labels\": [...]}}",
         path);
  }
  const MappedFile file(path);
  refuse_foreign_format(path, file.text());
  refuse_binary(path, file.text());
  return std::make_unique<PairSamples>(
      PairSamples::File{path, file.text()},
      PairOptions{options.sizes, options.vocabulary, options.pair_tokens});
}

std::unique_ptr<SampleSource> open_whole(const std::string& path,
                                         const TextEncoder& encoder,
                                         const SampleOptions& options) {
  constexpr auto tail = StreamSamples::Tail::dropped;
  if (options.sizes.source > 0) return open_pairs(path, options);
  if (const auto prefix = find_megatron_prefix(path)) {
    auto set = std::make_unique<MegatronSet>(*prefix, options.vocabulary, options.split);
    std::vector<std::int64_t> cuts = set->cuts();
    return std::make_unique<StreamSamples>(std::move(set), options.sizes, tail, std::move(cuts));
  }
  if (names_shards(path)) {
    return std::make_unique<StreamSamples>(std::make_unique<TokenShards>(path, options.vocabulary),
                                           options.sizes, tail);
  }
  if (!path.ends_with(".bin")) refuse_missing_index(path);
  const MappedFile file(path);
  refuse_foreign_format(path, file.text());
  const bool is_llmc = begins_llmc(file.text());
  const bool is_tokens = path.ends_with(".bin") || (encoder.is_bytes() && is_llmc);
  if (is_llmc && !is_tokens) {
    fail(ErrorCode::input, "{}: is a token file of llm.c; its name must end with .bin", path);
  }
  if (!is_tokens) refuse_binary(path, file.text());
  if (is_json_name(path)) return open_json_lines({path, file.bytes()}, encoder, options);
  if (!is_tokens) refuse_records_as_text(path, file.text());
  auto source =
      std::make_unique<StreamSamples>(open_stream(path, encoder, options), options.sizes, tail);
  std::string note = is_tokens ? "" : note_on_json(path, file.text());
  if (!note.empty()) source->add_note(std::move(note));
  return source;
}

}  // namespace

bool holds_tokens(const std::string& path) {
  return path.ends_with(".bin") || names_shards(path) || find_megatron_prefix(path).has_value();
}

std::unique_ptr<SampleSource> open_samples(const std::string& path,
                                           const TextEncoder& encoder,
                                           const SampleOptions& options) {
  std::unique_ptr<SampleSource> source = open_whole(path, encoder, options);
  if (!options.split.empty() && !source->splits_documents()) {
    source->split_by_samples(options.split);
  }
  return source;
}

}  // namespace dstrain::data
