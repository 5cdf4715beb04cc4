#include "runtime/tokenizer/model_json.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/tokenizer/unigram.h"

namespace dstrain::tokenizer {
namespace {

/// There are some 100,000 rows, so a field with its position is created only for a wrong one.
std::vector<Merge> read_merges(const JsonField& field, const Vocabulary& vocabulary) {
  std::vector<Merge> merges;
  merges.reserve(field.size());
  for (std::size_t row = 0; row < field.size(); ++row) {
    const nlohmann::json& each = field.value()[row];
    const auto place = [&] {
      return field.element(row).place();
    };
    if (each.is_array()) {
      if (each.size() != 2) field.element(row).refuse("must be two tokens");
      const auto token = [&](std::size_t side) -> const std::string& {
        if (!each[side].is_string()) field.element(row).element(side).refuse("must be a string");
        return each[side].get_ref<const std::string&>();
      };
      merges.push_back(make_merge(token(0), token(1), vocabulary, place));
      continue;
    }
    if (!each.is_string()) field.element(row).refuse("must be a string");
    const auto& line = each.get_ref<const std::string&>();
    if (line.starts_with("#version")) continue;
    const auto [left, right] = split_merge(line, place);
    merges.push_back(make_merge(left, right, vocabulary, place));
  }
  return merges;
}

void refuse_unless_empty(const JsonField& field, std::string_view name) {
  if (!field.text_or(name, "").empty()) {
    field.refuse(fmt::format("has a {}, which is not supported", name));
  }
}

void refuse_dropout(const JsonField& field) {
  const auto dropout = field.find("dropout");
  if (dropout && (!dropout->value().is_number() || dropout->value().get<double>() != 0)) {
    dropout->refuse("must be null: tokens are not drawn at random");
  }
}

LoadedModel read_bpe(const JsonField& field, BpeUnit unit) {
  refuse_dropout(field);
  refuse_unless_empty(field, "continuing_subword_prefix");
  refuse_unless_empty(field, "end_of_word_suffix");
  const JsonField tokens = field.member("vocab");
  auto vocabulary = std::make_unique<Vocabulary>(read_token_ids(tokens), tokens.place());
  BpeSettings settings{.unit = unit,
                       .byte_fallback = field.flag_or("byte_fallback", false),
                       .fuse_unk = field.flag_or("fuse_unk", false),
                       .ignore_merges = field.flag_or("ignore_merges", false)};
  if (const auto unk = field.find("unk_token")) {
    settings.unk = vocabulary->id(unk->text());
    if (!settings.unk) unk->refuse(fmt::format("'{}' is not in the vocabulary", unk->text()));
  }
  const auto merges = read_merges(field.member("merges"), *vocabulary);
  auto model = std::make_unique<Bpe>(*vocabulary, merges, settings);
  const Bpe* const bpe = model.get();
  return {.vocabulary = std::move(vocabulary), .model = std::move(model), .bpe = bpe};
}

LoadedModel read_unigram(const JsonField& field) {
  const JsonField pieces = field.member("vocab");
  std::vector<VocabularyEntry> entries;
  std::vector<double> scores;
  pieces.for_each([&](const JsonField& piece) {
    if (piece.size() != 2) piece.refuse("must be a token and its score");
    const JsonField score = piece.element(1);
    if (!score.value().is_number()) score.refuse("must be a number");
    entries.push_back({piece.element(0).text(), static_cast<std::int32_t>(entries.size())});
    scores.push_back(score.value().get<double>());
  });
  const JsonField unk = field.member("unk_id");
  if (static_cast<std::size_t>(unk.number()) >= scores.size()) {
    unk.refuse("must be the place of a token in vocab");
  }
  const UnigramSettings settings{.unk = unk.number(),
                                 .byte_fallback = field.flag_or("byte_fallback", false)};
  auto vocabulary = std::make_unique<Vocabulary>(std::move(entries), pieces.place());
  auto model = std::make_unique<Unigram>(*vocabulary, std::move(scores), settings);
  return {.vocabulary = std::move(vocabulary), .model = std::move(model)};
}

}  // namespace

std::vector<VocabularyEntry> read_token_ids(const JsonField& field) {
  if (!field.value().is_object()) field.refuse("must be an object of tokens and ids");
  std::vector<VocabularyEntry> entries;
  entries.reserve(field.value().size());
  for (const auto& [token, id] : field.value().items()) {
    if (!id.is_number_unsigned()) field.member(token).refuse("must be an id");
    const bool fits = std::in_range<std::int32_t>(id.get<std::uint64_t>());
    entries.push_back({token, fits ? id.get<std::int32_t>() : field.member(token).number()});
  }
  return entries;
}

Merge make_merge(std::string_view left,
                 std::string_view right,
                 const Vocabulary& vocabulary,
                 FunctionRef<std::string()> place) {
  const auto id_of = [&](std::string_view token) {
    const auto id = vocabulary.id(token);
    if (!id || token.empty()) {
      fail(ErrorCode::input, "{}: the token '{}' is not in the vocabulary", place(),
           printable(token));
    }
    return *id;
  };
  return {
      .left = id_of(left), .right = id_of(right), .result = id_of(std::string(left).append(right))};
}

std::pair<std::string_view, std::string_view> split_merge(std::string_view line,
                                                          FunctionRef<std::string()> place) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
    fail(ErrorCode::input, "{}: must be two tokens with a space between them, is '{}'", place(),
         printable(line));
  }
  return {line.substr(0, space), line.substr(space + 1)};
}

LoadedModel read_model(const JsonField& field, BpeUnit unit) {
  // Files of the library's first versions have no type.
  const std::string type = field.text_or("type", field.find("merges") ? "BPE" : "");
  if (type == "BPE") return read_bpe(field, unit);
  if (type != "Unigram") {
    field.refuse(
        fmt::format("has the type '{}', which is not supported: BPE and Unigram are", type));
  }
  if (unit == BpeUnit::byte) field.refuse("is Unigram, which ByteLevel is not supported with");
  return read_unigram(field);
}

}  // namespace dstrain::tokenizer
