#include "runtime/data/open_samples.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"
#include "runtime/data/megatron_set.h"
#include "runtime/data/record_samples.h"
#include "runtime/data/stream_samples.h"
#include "runtime/data/token_cache.h"
#include "runtime/data/token_file.h"
#include "runtime/data/tokenize_file.h"

namespace dstrain::data {
namespace {

constexpr std::array<std::string_view, 3> json_extensions{".jsonl", ".ndjson", ".json"};

/// Formats that people have data in, how their files begin or end, and the way from there.
struct ForeignFormat {
  std::string_view extension;
  std::string_view magic;
  std::string_view remedy;
};

constexpr std::array<ForeignFormat, 8> foreign_formats{
    {{".parquet", "PAR1",
      "Parquet is not read; make JSON lines of it: python3 -c \"import pandas as p; "
      "p.read_parquet('in.parquet').to_json('out.jsonl', orient='records', lines=True)\""},
     {".arrow", "ARROW1",
      "Arrow is not read; make JSON lines of it: python3 -c \"import datasets as d; "
      "d.Dataset.from_file('in.arrow').to_json('out.jsonl')\""},
     {".npy", "\x93NUMPY", "NumPy's arrays are not read; write the ids to an llm.c .bin"},
     {".csv", "", "CSV is not read; make JSON lines of it, an object with \"text\" a line"},
     {".gz", "\x1f\x8b", "is compressed; gunzip it first"},
     {".zst", "\x28\xb5\x2f\xfd", "is compressed; unzstd it first"},
     {".xz",
      "\xfd"
      "7zXZ",
      "is compressed; unxz it first"},
     {".bz2", "BZh", "is compressed; bunzip2 it first"}}};

void refuse_foreign(const std::string& path, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const ForeignFormat& format : foreign_formats) {
    const bool begins_so = !format.magic.empty() && text.starts_with(format.magic);
    if (path.ends_with(format.extension) || begins_so) {
      fail(ErrorCode::input, "{}: {}", path, format.remedy);
    }
  }
}

bool is_json_lines(const std::string& path) {
  return std::ranges::find(json_extensions, std::filesystem::path(path).extension().string()) !=
         json_extensions.end();
}

/// A JSON array of all records is one line of JSON, or many that are none.
void refuse_array(const TextFile& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '[') return;
  fail(ErrorCode::input,
       "{}: is a JSON array; JSON lines are one object a line: jq -c '.[]' in.json > out.jsonl",
       file.path);
}

using Tokenize = void (*)(const TextFile&, const TextEncoder&, const std::filesystem::path&);

TokenSet tokens_of(const TextFile& file,
                   const TextEncoder& encoder,
                   const SampleOptions& options,
                   Tokenize tokenize) {
  const std::filesystem::path directory = options.cache.empty() ? cache_directory() : options.cache;
  const std::string method =
      fmt::format("{} {}", tokenize == tokenize_text ? "text" : "json lines", encoder.identity());
  return cached_tokens(
      directory, token_key(file.bytes, method), [&](const std::filesystem::path& target) {
        log_info(
            fmt::format("{}: its tokens are made, and kept in {}", file.path, directory.string()));
        tokenize(file, encoder, target);
      });
}

std::unique_ptr<SampleSource> open_json_lines(const TextFile& file,
                                              const TextEncoder& encoder,
                                              const SampleOptions& options) {
  refuse_array(file);
  TokenSet set = tokens_of(file, encoder, options, tokenize_json_lines);
  RecordFile origin{file.path, std::ssize(file.bytes), options.vocabulary};
  if (options.packing && set.kind() == RecordKind::text) {
    return std::make_unique<StreamSamples>(
        std::make_unique<RecordStream>(std::move(origin), std::move(set)), options.block_size,
        StreamSamples::Tail::padded);
  }
  return std::make_unique<RecordSamples>(
      std::move(origin), std::move(set), options.block_size,
      options.packing ? RecordSamples::Packing::many_per_row : RecordSamples::Packing::one_per_row);
}

std::unique_ptr<TokenStream> open_stream(const std::string& path,
                                         const TextEncoder& encoder,
                                         const SampleOptions& options) {
  if (const auto prefix = find_megatron_prefix(path)) {
    return std::make_unique<MegatronSet>(*prefix, options.vocabulary);
  }
  if (encoder.is_bytes() || path.ends_with(".bin")) {
    return std::make_unique<TokenFile>(path, options.vocabulary);
  }
  const MappedFile file(path);
  return std::make_unique<RecordStream>(
      RecordFile{path, std::ssize(file.bytes()), options.vocabulary},
      tokens_of({path, file.bytes()}, encoder, options, tokenize_text));
}

}  // namespace

bool holds_tokens(const std::string& path) {
  return path.ends_with(".bin") || find_megatron_prefix(path).has_value();
}

std::unique_ptr<SampleSource> open_samples(const std::string& path,
                                           const TextEncoder& encoder,
                                           const SampleOptions& options) {
  if (!find_megatron_prefix(path)) {
    const MappedFile file(path);
    refuse_foreign(path, file.bytes());
    if (is_json_lines(path)) return open_json_lines({path, file.bytes()}, encoder, options);
  }
  return std::make_unique<StreamSamples>(open_stream(path, encoder, options), options.block_size,
                                         StreamSamples::Tail::dropped);
}

}  // namespace dstrain::data
