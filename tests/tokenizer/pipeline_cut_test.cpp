// Cuts under pipelines of steps that the golden tokenizers do not have, with added tokens of every
// kind.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/utf8.h"
#include "runtime/os/file.h"
#include "runtime/tokenizer/tokenizer_json.h"
#include "tests/support/catch.h"
#include "tests/tokenizer/random_texts.h"

using namespace dstrain;
using nlohmann::json;
using tokenizer::Codec;
using tokenizer::SpecialTokens;

namespace {

using Ids = std::vector<std::int32_t>;

const std::filesystem::path models = DSTRAIN_SOURCE_DIR "/tests/golden/tokenizers";

struct Steps {
  const char* name;
  const char* model;  ///< of a golden tokenizer; that of splits has merges across everything
  const char* normalizer;
  const char* pre_tokenizer;
  std::size_t cuts_min;  ///< in all texts together
};

const std::vector<std::string> added{"<b>", "<l>", "<r>", "a b", "the", "\n\n", "N", "of"};

const std::string written =
    "aa the e\u0301 e\u0301x a\u0301 \u1100\u1161 d\u200d \u00a0\u0301 x\u3000y ththe  <l>  of the";

/// Tokens that the vocabulary does not have are numbered behind it.
json added_token(const std::string& content, const json& vocabulary, int& next_id) {
  const bool known = vocabulary.contains(content);
  return {{"id", known ? vocabulary[content].get<int>() : next_id++},
          {"content", content},
          {"single_word", content == "the" || content == "of"},
          {"lstrip", content == "<b>" || content == "<l>"},
          {"rstrip", content == "<b>" || content == "<r>"},
          {"normalized", content == "N" || content == "of" || content == "<l>"},
          {"special", false}};
}

std::unique_ptr<Codec> make_codec(const Steps& row, bool with_added) {
  json file = json::parse(read_text_file(models / row.model / "tokenizer.json", 16 * mebibyte));
  file["normalizer"] = json::parse(row.normalizer);
  file["pre_tokenizer"] = json::parse(row.pre_tokenizer);
  const json& vocabulary = file["model"]["vocab"];
  auto next_id = static_cast<int>(vocabulary.size());
  for (const std::string& content : added) {
    if (with_added) file["added_tokens"].push_back(added_token(content, vocabulary, next_id));
  }
  return tokenizer::parse_tokenizer_json(file.dump(), row.name);
}

/// The number of its places that may be cut, at each of which the tokens are those of the whole.
std::size_t check_cuts(const Codec& codec, std::string_view text) {
  Ids whole;
  codec.encode(text, SpecialTokens::none, whole);
  Ids whole_following;
  codec.encode_following(text, whole_following);
  std::size_t cuts = 0;
  for (std::size_t cut = first_character(text).size; cut < text.size();
       cut += first_character(text.substr(cut)).size) {
    const std::string_view piece = text.substr(0, cut);
    const std::string_view rest = text.substr(cut);
    if (!codec.allows_cut(last_character(piece).code, first_character(rest).code)) continue;
    CAPTURE(cut, piece, rest);
    Ids pieces;
    codec.encode(piece, SpecialTokens::none, pieces);
    codec.encode_following(rest, pieces);
    REQUIRE(pieces == whole);
    pieces.clear();
    codec.encode_following(piece, pieces);
    codec.encode_following(rest, pieces);
    REQUIRE(pieces == whole_following);
    ++cuts;
  }
  return cuts;
}

}  // namespace

TEST_CASE("Pipeline: cuts under every step give the tokens of the whole", "[tokenizer]") {
  const auto row = GENERATE(values<Steps>({
      {"joints alone", "splits", "null", "null", 20},
      {"Gemma", "llama2", R"({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})",
       R"({"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
           "invert": false})",
       50},
      {"strip", "splits", R"({"type": "Strip", "strip_left": true, "strip_right": true})",
       R"({"type": "WhitespaceSplit"})", 1},
      {"prepend and strip", "splits",
       R"({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
           {"type": "Strip", "strip_left": true, "strip_right": false}]})",
       R"({"type": "Whitespace"})", 50},
      {"strip and prepend", "splits",
       R"({"type": "Sequence", "normalizers": [
           {"type": "Strip", "strip_left": true, "strip_right": false},
           {"type": "Prepend", "prepend": "x"}]})",
       R"({"type": "Split", "pattern": {"Regex": "\\s"}, "behavior": "Removed",
           "invert": false})",
       50},
      {"blanks become one", "splits",
       R"({"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "})",
       R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true})",
       50},
      {"letters vanish", "splits",
       R"({"type": "Sequence", "normalizers": [
           {"type": "Replace", "pattern": {"Regex": "[aeiou]"}, "content": ""},
           {"type": "Prepend", "prepend": "x"}]})",
       R"({"type": "Whitespace"})", 50},
      {"another word", "splits",
       R"({"type": "Replace", "pattern": {"String": "th"}, "content": "z "})",
       R"({"type": "Punctuation", "behavior": "Contiguous"})", 20},
      {"decomposed", "splits",
       R"({"type": "Sequence", "normalizers": [{"type": "Lowercase"}, {"type": "NFKD"},
           {"type": "StripAccents"}]})",
       R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": false},
           {"type": "Whitespace"}]})",
       50},
      {"DeepSeek", "gpt2", "null",
       R"({"type": "Sequence", "pretokenizers": [
           {"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}"}, "behavior": "Isolated",
            "invert": false},
           {"type": "Split", "pattern": {"Regex": "[一-龥぀-ゟ゠-ヿ]+"}, "behavior": "Isolated",
            "invert": false},
           {"type": "Split", "pattern": {"Regex":
            "[!-/:-~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|)"
       R"( ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"},
            "behavior": "Isolated", "invert": false},
           {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
            "use_regex": false}]})",
       50},
      {"spaces before words", "gpt2", R"({"type": "Nmt"})",
       R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
           {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
            "use_regex": true}]})",
       50},
      {"signs of words never", "splits", "null",
       R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": true})",
       50},
      {"signs of words at first", "splits", R"({"type": "NFC"})",
       R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true})",
       50},
      {"a text's beginning vanishes", "splits",
       R"({"type": "Sequence", "normalizers": [
           {"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""},
           {"type": "Prepend", "prepend": "x"}]})",
       R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true})",
       20},
      {"some words", "splits", "null",
       R"({"type": "Split", "pattern": {"String": "th"}, "behavior": "Isolated",
           "invert": false})",
       20},
      {"composed before a blank", "gpt2", R"({"type": "NFC"})",
       R"({"type": "Sequence", "pretokenizers": [
           {"type": "Split", "pattern": {"Regex": "é\\s|."}, "behavior": "Isolated",
            "invert": false},
           {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
            "use_regex": false}]})",
       50},
      {"words alone", "gpt2", R"({"type": "Prepend", "prepend": "q"})",
       R"({"type": "Sequence", "pretokenizers": [
           {"type": "Split", "pattern": {"Regex": "\\w+"}, "behavior": "Removed", "invert": true},
           {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
            "use_regex": false}]})",
       0},
  }));
  for (const bool with_added : {false, true}) {
    const auto codec = make_codec(row, with_added);
    const test::RandomTexts texts(models, added);
    std::size_t cuts = check_cuts(*codec, written);
    for (std::uint64_t number = 0; number < 150; ++number) {
      std::string storage;
      const std::string text = texts.text(number) + " of" + texts.text(number + 90'000);
      CAPTURE(row.name, with_added, number, text);
      cuts += check_cuts(*codec, valid_utf8(text, storage));
    }
    CAPTURE(row.name, with_added);
    CHECK(cuts >= row.cuts_min);
  }
}
