// Texts that are encoded in pieces have the tokens of the whole.
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/os/file.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/support/catch.h"
#include "tests/tokenizer/random_texts.h"

using namespace dstrain;
using tokenizer::Tokenizer;

namespace {

using Ids = std::vector<std::int32_t>;

const std::filesystem::path golden_folder = DSTRAIN_SOURCE_DIR "/tests/golden/tokenizers";
const std::vector<std::string> families_with_cuts{"gpt2",     "gpt2_files",     "llama3", "qwen2",
                                                  "tekken",   "roberta",        "llama2", "mistral",
                                                  "unknowns", "unknowns_fused", "t5",     "albert"};
/// A split that asks for the ends of the text, and two files of SentencePiece.
const std::vector<std::string> families_without{"splits", "sentencepiece_bpe",
                                                "sentencepiece_unigram"};

std::vector<std::string> specials_of(const std::string& family) {
  const auto expected =
      nlohmann::json::parse(read_text_file(golden_folder / family / "expected.json", mebibyte));
  return expected["specials"].get<std::vector<std::string>>();
}

/// The cuts that windows of a text of any size are given.
std::set<std::size_t> cuts_of(const Tokenizer& tokenizer, std::string_view text) {
  std::set<std::size_t> cuts;
  for (std::size_t end = 1; end <= text.size(); ++end) {
    cuts.insert(tokenizer.safe_cut(text.substr(0, end)));
  }
  cuts.erase(0);
  return cuts;
}

Ids joined(Ids ids, const Ids& more) {
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

/// Whether a text may be cut there, as a first piece and as one that follows.
bool is_exact(const Tokenizer& tokenizer, std::string_view text, std::size_t cut) {
  const Ids rest = tokenizer.encode_following(text.substr(cut));
  const std::string_view piece = text.substr(0, cut);
  return joined(tokenizer.encode(piece), rest) == tokenizer.encode(text) &&
         joined(tokenizer.encode_following(piece), rest) == tokenizer.encode_following(text);
}

}  // namespace

TEST_CASE("SafeCut: every cut of every random text gives the tokens of the whole", "[tokenizer]") {
  constexpr std::uint64_t texts_per_family = 50;
  for (const std::string& family : families_with_cuts) {
    const auto tokenizer = Tokenizer::load((golden_folder / family).string());
    const test::RandomTexts texts(golden_folder, specials_of(family));
    std::size_t cuts = 0;
    for (std::uint64_t number = 0; number < texts_per_family; ++number) {
      const std::string text = texts.text(number) + " and" + texts.text(number + 70'000);
      for (const std::size_t cut : cuts_of(tokenizer, text)) {
        CAPTURE(family, number, cut, text);
        REQUIRE(is_exact(tokenizer, text, cut));
        ++cuts;
      }
    }
    CAPTURE(family);
    CHECK(cuts > texts_per_family);
  }
}

TEST_CASE("SafeCut: cuts of a text with everything that steps look at", "[tokenizer]") {
  const std::string text =
      "It's  o'clock, I'LL  go.\r\n\r\n\tHe said: \"3.14, 1234567 x\" ...\n   \n  a\u0301 "
      "e\u0301\u0301 \u0301 o \u200d \u00a0 b\u3000c \u2581d \ufb01n \u1100\u1161\u11a8 "
      "\U0001F1E9\U0001F1EA \U0001F468\u200d\U0001F469 \u4f60\u597d\uff0c\u4e16\u754c\u3002 the "
      "wording word sword <both>  x  <left> y [INST] z <s></s> <mask> <|endoftext|> "
      "<extra_id_0>q  \u00c5ngstr\u00f6m A\u030angstro\u0308m \xff\xe2\x96 \x80\x80\xf0\x9f b \xc3";
  for (const std::string& family : families_with_cuts) {
    const auto tokenizer = Tokenizer::load((golden_folder / family).string());
    const auto cuts = cuts_of(tokenizer, text);
    CAPTURE(family, cuts.size());
    CHECK(cuts.size() > 8);
    for (const std::size_t cut : cuts) {
      CAPTURE(cut, text.substr(0, cut));
      CHECK(is_exact(tokenizer, text, cut));
    }
  }
}

TEST_CASE("SafeCut: ordinary text can be cut every few words", "[tokenizer]") {
  constexpr std::size_t window = 160;
  const std::string text = read_text_file(DSTRAIN_SOURCE_DIR "/docs/decisions.md", mebibyte);
  for (const std::string& family : families_with_cuts) {
    const auto tokenizer = Tokenizer::load((golden_folder / family).string());
    const std::string_view view = text;
    std::size_t pieces = 0;
    Ids ids;
    std::size_t begin = 0;
    while (begin + window < view.size()) {
      const std::size_t cut = tokenizer.safe_cut(view.substr(begin, window));
      CAPTURE(family, begin);
      REQUIRE(cut > 0);
      const std::string_view piece = view.substr(begin, cut);
      ids = joined(ids, begin == 0 ? tokenizer.encode(piece) : tokenizer.encode_following(piece));
      begin += cut;
      ++pieces;
    }
    ids = joined(ids, tokenizer.encode_following(view.substr(begin)));
    CHECK((ids == tokenizer.encode(text)));
    CHECK(pieces < 2 * text.size() / window);
  }
}

TEST_CASE("SafeCut: is 0 if no place is known", "[tokenizer]") {
  for (const std::string& family : families_without) {
    CAPTURE(family);
    const auto tokenizer = Tokenizer::load((golden_folder / family).string());
    CHECK(tokenizer.safe_cut("One. Two, three.\n\nFour") == 0);
  }
  const auto tokenizer = Tokenizer::load((golden_folder / "gpt2").string());
  CHECK(tokenizer.safe_cut("") == 0);
  CHECK(tokenizer.safe_cut("a") == 0);
  CHECK(tokenizer.safe_cut(std::string(1000, 'a')) == 0);
  CHECK(tokenizer.safe_cut(std::string(1000, ' ')) == 0);
  CHECK(tokenizer.safe_cut("word word") == 4);
  CHECK(tokenizer.safe_cut("word ") == 4);
}
