#include "runtime/tokenizer/gpt2_files.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"
#include "runtime/os/file.h"
#include "runtime/tokenizer/json_field.h"
#include "runtime/tokenizer/model_json.h"
#include "runtime/tokenizer/pipeline.h"

namespace dstrain::tokenizer {
namespace {

constexpr Bytes gpt2_bytes_max = 256 * mebibyte;

std::vector<Merge> read_merge_lines(const std::filesystem::path& path,
                                    const Vocabulary& vocabulary) {
  const std::string text = read_text_file(path, gpt2_bytes_max);
  std::vector<Merge> merges;
  std::string_view rest = text;
  for (int line_number = 1; !rest.empty(); ++line_number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const auto place = [&] {
      return fmt::format("{}:{}", path.string(), line_number);
    };
    const auto [left, right] = split_merge(line, place);
    merges.push_back(make_merge(left, right, vocabulary, place));
  }
  return merges;
}

std::vector<AddedToken> special_tokens_of(const Vocabulary& vocabulary, const SpecialNames& names) {
  std::vector<std::string> contents = names.all;
  if (contents.empty()) contents.emplace_back("<|endoftext|>");
  std::vector<AddedToken> tokens;
  for (const std::string& content : contents) {
    if (const auto id = vocabulary.id(content)) {
      tokens.push_back({.content = content, .id = *id, .special = true});
    }
  }
  return tokens;
}

void add_around(const std::optional<std::string>& name,
                const Vocabulary& vocabulary,
                std::vector<std::int32_t>& ids) {
  if (!name) return;
  if (const auto id = vocabulary.id(*name)) ids.push_back(*id);
}

}  // namespace

std::unique_ptr<Codec> load_gpt2_files(const std::filesystem::path& directory,
                                       const SpecialNames& names) {
  const std::string vocab = (directory / "vocab.json").string();
  const nlohmann::json document = parse_json_object(read_text_file(vocab, gpt2_bytes_max), vocab);
  auto vocabulary =
      std::make_unique<Vocabulary>(read_token_ids(JsonField(document, vocab + ": ")), vocab);
  const auto merges = read_merge_lines(directory / "merges.txt", *vocabulary);
  PipelineParts parts;
  parts.model = std::make_unique<Bpe>(*vocabulary, merges, BpeSettings{.unit = BpeUnit::byte});
  parts.added_tokens = special_tokens_of(*vocabulary, names);
  parts.pre_tokenizers = gpt2_pre_tokenizers();
  parts.decoders.push_back(make_byte_level_decoder());
  if (names.add_bos) add_around(names.bos, *vocabulary, parts.post_processor.before);
  if (names.add_eos) add_around(names.eos, *vocabulary, parts.post_processor.after);
  parts.vocabulary = std::move(vocabulary);
  return std::make_unique<Pipeline>(std::move(parts), vocab);
}

}  // namespace dstrain::tokenizer
