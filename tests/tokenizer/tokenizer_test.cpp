#include "runtime/tokenizer/tokenizer.h"

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/utf8.h"
#include "tests/support/catch.h"
#include "tests/tokenizer/random_texts.h"

using namespace dstrain;
using tokenizer::SpecialTokens;
using tokenizer::Tokenizer;

namespace {

const std::filesystem::path tokenizers_folder = DSTRAIN_SOURCE_DIR "/tests/golden/tokenizers";

Tokenizer golden_tokenizer(const std::string& name) {
  return Tokenizer::load((tokenizers_folder / name).string());
}

std::string repaired(const std::string& text) {
  std::string storage;
  return std::string(valid_utf8(text, storage));
}

}  // namespace

TEST_CASE("Tokenizer: byte-level tokenizers give back every text", "[tokenizer]") {
  const auto name = GENERATE(as<std::string>(), "gpt2", "llama3", "tekken");
  const Tokenizer tokenizer = golden_tokenizer(name);
  const test::RandomTexts texts(tokenizers_folder, {});
  for (std::uint64_t number = 0; number < 2000; ++number) {
    const std::string text = repaired(texts.text(number));
    CAPTURE(name, number, text);
    REQUIRE(tokenizer.decode(tokenizer.encode(text)) == text);
  }
}

TEST_CASE("Tokenizer: the bytes of tokens sum to those of their text", "[tokenizer]") {
  const auto bytes_of = [](const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
    std::int64_t bytes = 0;
    for (const std::int32_t id : ids) bytes += tokenizer.text_bytes(id);
    return bytes;
  };
  SECTION("of parts of characters") {
    const auto name = GENERATE(as<std::string>(), "gpt2", "llama3", "tekken");
    const Tokenizer tokenizer = golden_tokenizer(name);
    const test::RandomTexts texts(tokenizers_folder, {});
    for (std::uint64_t number = 0; number < 2000; ++number) {
      const auto ids = tokenizer.encode(repaired(texts.text(number)));
      CAPTURE(name, number);
      REQUIRE(bytes_of(tokenizer, ids) ==
              std::ssize(tokenizer.decode(ids, tokenizer::SpecialText::skipped)));
    }
  }
  SECTION("with the space that begins a text") {
    const auto name = GENERATE(as<std::string>(), "llama2", "mistral", "t5", "sentencepiece_bpe",
                               "sentencepiece_unigram");
    const Tokenizer tokenizer = golden_tokenizer(name);
    const std::string text = "The launcher checks  each option";
    const auto ids = tokenizer.encode(text);
    CAPTURE(name, ids);
    CHECK(bytes_of(tokenizer, ids) == 1 + std::ssize(tokenizer.decode(ids)));
  }
  const Tokenizer llama = golden_tokenizer("llama2");
  CHECK(llama.text_bytes(llama.id("<0xE2>").value()) == 1);
  for (const std::int32_t none : {1, 2, -1, 1 << 30}) CHECK(llama.text_bytes(none) == 0);
}

TEST_CASE("Tokenizer: a long run without a space is no worse than words", "[tokenizer]") {
  const auto name = GENERATE(as<std::string>(), "gpt2", "llama2", "mistral", "t5", "unknowns");
  const Tokenizer tokenizer = golden_tokenizer(name);
  std::string run;
  for (std::size_t i = 0; run.size() < (1U << 20); ++i) run += "abcdefghijklmnop"[i * i % 31 % 16];
  const auto ids = tokenizer.encode(run);
  CHECK(ids.size() > run.size() / 20);
  CHECK(tokenizer.decode(ids).find("abcdef") == std::string::npos);
  CHECK(tokenizer.encode(std::string(1U << 20, ' ')).size() <= (1U << 20) + 1);
}

TEST_CASE("Tokenizer: threads share one", "[tokenizer]") {
  const auto name = GENERATE(as<std::string>(), "llama3", "t5", "qwen2");
  const Tokenizer tokenizer = golden_tokenizer(name);
  const test::RandomTexts texts(tokenizers_folder, {});
  const auto encode_all = [&] {
    std::vector<std::int32_t> ids;
    for (std::uint64_t number = 0; number < 300; ++number) {
      tokenizer.encode(texts.text(number), SpecialTokens::none, ids);
    }
    return ids;
  };
  const auto expected = encode_all();
  std::vector<std::vector<std::int32_t>> found(4);
  {
    std::vector<std::jthread> threads;
    for (auto& ids : found) threads.emplace_back([&] { ids = encode_all(); });
  }
  for (const auto& ids : found) CHECK(ids == expected);
}

TEST_CASE("Tokenizer: the vocabulary is known by name and by id", "[tokenizer]") {
  const Tokenizer llama = golden_tokenizer("llama2");
  CHECK(llama.bos() == 1);
  CHECK(llama.eos() == 2);
  CHECK(llama.token(1) == "<s>");
  CHECK(llama.id("<0x41>") == 0x41 + 3);
  CHECK(llama.id("no such token") == std::nullopt);
  CHECK(llama.token(-1) == std::nullopt);
  CHECK(llama.token(1 << 30) == std::nullopt);
  CHECK(llama.vocabulary_size() == 1200);
  CHECK(llama.decode(std::vector<std::int32_t>{-5, 1 << 30}).empty());
  const Tokenizer qwen = golden_tokenizer("qwen2");
  CHECK(qwen.vocabulary_size() == 1000 + 9);
  CHECK(qwen.bos() == std::nullopt);
  const Tokenizer piece = golden_tokenizer("sentencepiece_unigram");
  CHECK(piece.vocabulary_size() == 800);
  CHECK(piece.id("<s>") == 1);
  CHECK(piece.id("no such token") == std::nullopt);
}

TEST_CASE("Tokenizer: broken UTF-8 is replaced as Python does", "[tokenizer]") {
  struct Row {
    std::string bytes;
    std::string text;  ///< with ? for U+FFFD
  };
  const auto row = GENERATE(values<Row>({
      {"plain", "plain"},
      {"\xE2\x96\x81", "\xE2\x96\x81"},
      {"a\xFFz", "a?z"},
      {"a\xE2\x96z", "a?z"},
      {"\xE2\x96", "?"},
      {"\xF0\x9F\x91", "?"},
      {"\xF0\x9F\x91\xF0\x9F\x91\x8D", "?\xF0\x9F\x91\x8D"},
      {"\xED\xA0\x80", "???"},
      {"\xC0\xAF", "??"},
      {"\xF4\x90\x80\x80", "????"},
      {"\xE0\x80\x80", "???"},
      {"12345678\x80", "12345678?"},
  }));
  std::string expected;
  for (const char byte : row.text) expected += byte == '?' ? "\xEF\xBF\xBD" : std::string(1, byte);
  CHECK(repaired(row.bytes) == expected);
}
