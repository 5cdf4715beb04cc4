#include "runtime/tokenizer/word_cut.h"

#include <string>
#include <vector>

#include "runtime/base/utf8.h"
#include "runtime/tokenizer/pre_tokenizer.h"
#include "tests/support/catch.h"
#include "tests/tokenizer/random_texts.h"

using namespace dstrain;

namespace {

/// The words of GPT-2.
std::vector<std::string> words_of(std::string_view text) {
  static const tokenizer::PreTokenizers gpt2 = tokenizer::gpt2_pre_tokenizers();
  std::string storage;
  tokenizer::Words words;
  words.passage.text = valid_utf8(text, storage);
  words.spans = {{0, words.passage.text.size()}};
  tokenizer::CutMemory memory;
  for (const auto& step : gpt2.steps) step->apply(words, memory);
  std::vector<std::string> found;
  for (const auto& span : words.spans) found.emplace_back(span.of(words.passage.text));
  return found;
}

}  // namespace

TEST_CASE("Word cut: the words of both sides are those of the whole", "[tokenizer]") {
  const test::RandomTexts texts(DSTRAIN_SOURCE_DIR "/tests/golden/tokenizers", {});
  int cuts = 0;
  for (std::uint64_t number = 0; number < 3000; ++number) {
    const std::string text = texts.text(number) + texts.text(number + 1);
    // Seen from a place amid the text, which may lie within a character.
    const std::size_t seen = text.size() * (number % 7 + 1) / 8;
    const std::size_t cut = tokenizer::last_word_cut(std::string_view(text).substr(0, seen));
    CAPTURE(number, text, cut);
    REQUIRE((cut == 0 || cut < seen));
    std::vector<std::string> words = words_of(text.substr(0, cut));
    for (std::string& word : words_of(text.substr(cut))) words.push_back(std::move(word));
    REQUIRE(words == words_of(text));
    cuts += cut > 0 ? 1 : 0;
  }
  CHECK(cuts > 1500);
}

TEST_CASE("Word cut: the last place before white space is found", "[tokenizer]") {
  struct Row {
    std::string text;
    std::size_t cut;
  };
  const auto row = GENERATE(values<Row>({{"", 0},
                                         {"a", 0},
                                         {" ", 0},
                                         {" a", 0},
                                         {"a ", 1},
                                         {"a  ", 1},
                                         {"a b c", 3},
                                         {"a\n\n  b", 1},
                                         {"a\xC2\xA0 b", 0},
                                         {"a\xE3\x80\x80 b", 0},
                                         {"a\xE3\x80\x82 b", 4},
                                         {"\xA0 b", 1},
                                         {"\x1F b", 1}}));
  CAPTURE(row.text);
  CHECK(tokenizer::last_word_cut(row.text) == row.cut);
}
