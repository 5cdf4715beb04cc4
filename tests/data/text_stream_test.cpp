// Text of tokens that come one by one.
#include "runtime/data/text_stream.h"

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/utf8.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using data::StopStrings;
using data::TextEncoder;
using data::TextStream;

namespace {

const std::vector<std::string> all_tokenizers{"byte",     "albert",
                                              "gpt2",     "gpt2_files",
                                              "llama2",   "llama3",
                                              "mistral",  "qwen2",
                                              "roberta",  "sentencepiece_bpe",
                                              "splits",   "t5",
                                              "tekken",   "sentencepiece_unigram",
                                              "unknowns", "unknowns_fused"};

const auto tokenizers = std::filesystem::path(DSTRAIN_SOURCE_DIR) / "tests/golden/tokenizers";

std::unique_ptr<TextEncoder> encoder_of(const std::string& name) {
  return data::make_encoder(name == "byte" ? name : (tokenizers / name).string());
}

/// Mostly text, and tokens in any order, ids without a token among them.
std::vector<std::int32_t> random_tokens(const TextEncoder& encoder, std::mt19937& random) {
  static const std::vector<std::string> texts{"Hello, world.",
                                              "  two  spaces\n\n",
                                              "naïve €5",
                                              "日本語のテキスト",
                                              "👍🏽 🇩🇪",
                                              "\n",
                                              " ",
                                              "a"};
  std::vector<std::int32_t> tokens;
  const auto vocabulary = static_cast<std::uint32_t>(encoder.vocabulary());
  const auto size = random() % 40;
  while (tokens.size() < size) {
    if (random() % 3 == 0) {
      const auto ids = encoder.encode(texts[random() % texts.size()]);
      tokens.insert(tokens.end(), ids.begin(), ids.end());
    } else if (random() % 3 == 0) {  // where byte fallback has its bytes
      tokens.push_back(static_cast<std::int32_t>(random() % std::min(vocabulary, 262U)));
    } else {
      tokens.push_back(static_cast<std::int32_t>(random() % (vocabulary + 3)));
    }
  }
  return tokens;
}

std::vector<std::string> pieces_of(const TextEncoder& encoder,
                                   const std::vector<std::int32_t>& tokens) {
  TextStream stream(encoder);
  std::vector<std::string> pieces;
  for (const std::int32_t token : tokens) pieces.push_back(stream.add(token));
  pieces.push_back(stream.finish());
  return pieces;
}

/// Pieces and pending text are the text of the tokens at any time.
void check_random_texts(const TextEncoder& encoder, bool has_broken_text) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const auto tokens = random_tokens(encoder, random);
    CAPTURE(seed, tokens);
    TextStream stream(encoder);
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string piece = stream.add(tokens[i]);
      text += piece;
      if (!has_broken_text) REQUIRE_FALSE(find_invalid_utf8(piece));
      const auto so_far = std::span(tokens).first(i + 1);
      REQUIRE(text + std::string(stream.pending()) == encoder.decode(so_far));
    }
    REQUIRE(text + stream.finish() == encoder.decode(tokens));
  }
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  return all;
}

}  // namespace

TEST_CASE("TextStream: pieces together are the text of all tokens", "[data]") {
  const std::string name = GENERATE(from_range(all_tokenizers));
  CAPTURE(name);
  check_random_texts(*encoder_of(name), name == "byte");
}

TEST_CASE("TextStream: pieces follow any steps of a decoder", "[data]") {
  const std::string replace = R"({"type": "Replace", "content": " ", "pattern": {"String": "▁"}})";
  const std::string bytes = R"({"type": "ByteFallback"})";
  const std::string fuse = R"({"type": "Fuse"})";
  const std::string strip = R"({"type": "Strip", "content": " ", "start": 2, "stop": 2})";
  const std::string marks = R"({"type": "Metaspace", "replacement": "▁"})";
  // Matches across tokens, which therefore come at the end.
  const std::string across =
      R"({"type": "Replace", "content": "!", "pattern": {"Regex": "o+ +w"}})";
  const std::string steps = GENERATE_COPY(
      as<std::string>(), replace + "," + bytes + "," + fuse + "," + strip, strip + "," + replace,
      replace + "," + strip + "," + bytes, marks + "," + bytes, bytes + "," + marks,
      fuse + "," + marks, fuse + "," + bytes, replace + "," + fuse + "," + across, across,
      R"({"type": "ByteLevel"})", R"({"type": "ByteLevel"},)" + strip,
      fuse + R"(,{"type": "ByteLevel"})", bytes + "," + bytes);
  CAPTURE(steps);
  const test::TempDir folder;
  std::ifstream file(tokenizers / "llama2/tokenizer.json");
  auto document = nlohmann::json::parse(file);
  document["decoder"] =
      nlohmann::json::parse(R"({"type": "Sequence", "decoders": [)" + steps + "]}");
  std::ofstream(folder.path() / "tokenizer.json") << document;
  check_random_texts(*data::make_encoder(folder.path().string()), false);
}

TEST_CASE("TextStream: a character comes with the token that completes it", "[data]") {
  const std::string name = GENERATE(
      filter([](const std::string& each) { return each != "splits"; },  // knows no such characters
             from_range(all_tokenizers)));
  const auto encoder = encoder_of(name);
  const std::vector<std::int32_t> tokens = encoder->encode("a 👍 b 語 c");
  const auto pieces = pieces_of(*encoder, tokens);
  CAPTURE(name, tokens, pieces);
  for (const std::string& piece : pieces) CHECK_FALSE(find_invalid_utf8(piece));
  CHECK(pieces.back().empty());
  const auto first = std::find_if(pieces.begin(), pieces.end(),
                                  [](const std::string& piece) { return !piece.empty(); });
  CHECK(first - pieces.begin() < 2);
}

TEST_CASE("TextStream: bytes of a character wait for its last one", "[data]") {
  const auto encoder = encoder_of("byte");
  CHECK(pieces_of(*encoder, {'a', 0xE2, 0x82, 0xAC, 'b'}) ==
        std::vector<std::string>{"a", "", "", "€", "b", ""});
  CHECK(pieces_of(*encoder, {0xE2, 0x82}) == std::vector<std::string>{"", "", "\xE2\x82"});
  CHECK(pieces_of(*encoder, {0xE2, 'a'}) == std::vector<std::string>{"",
                                                                     "\xE2"
                                                                     "a",
                                                                     ""});
  CHECK(pieces_of(*encoder, {300, 0xFF}) == std::vector<std::string>{"\uFFFD", "\xFF", ""});
}

TEST_CASE("TextStream: a run of fallback bytes waits for its end", "[data]") {
  const auto encoder = encoder_of("llama2");
  const auto byte = [](int value) {
    return value + 3;
  };  // behind <unk>, <s> and </s>
  const std::int32_t a = encoder->encode("a").back();
  TextStream stream(*encoder);
  CHECK(stream.add(a) == "a");
  CHECK(stream.add(byte('\n')).empty());
  CHECK(stream.pending() == "\n");
  CHECK(stream.add(byte(0xFF)).empty());
  CHECK(stream.pending() == "\uFFFD\uFFFD");
  CHECK(stream.add(a) == "\uFFFD\uFFFD" + encoder->decode(std::vector{a, a}).substr(1));
  CHECK(stream.finish().empty());
}

TEST_CASE("TextStream: a stream that has finished begins anew", "[data]") {
  const auto encoder = encoder_of("llama2");
  TextStream stream(*encoder);
  const std::vector<std::int32_t> tokens = encoder->encode("Hello world");
  for (int text = 0; text < 2; ++text) {
    std::string all;
    for (const std::int32_t token : tokens) all += stream.add(token);
    CHECK(all + stream.finish() == "Hello world");
  }
}

TEST_CASE("TextStream: few tokens are decoded again", "[data]") {
  /// Counts the tokens that it decodes.
  struct Counting : data::TextEncoder {
    explicit Counting(const TextEncoder& real_encoder) : real(real_encoder) {}
    [[nodiscard]] std::int64_t text_bytes(std::int32_t id) const override {
      return real.text_bytes(id);
    }
    [[nodiscard]] std::string identity() const override { return real.identity(); }
    [[nodiscard]] std::int64_t vocabulary() const override { return real.vocabulary(); }
    [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const override {
      return real.encode(text);
    }
    [[nodiscard]] std::size_t safe_cut(std::string_view text) const override {
      return real.safe_cut(text);
    }
    [[nodiscard]] std::vector<std::int32_t> encode_following(std::string_view text) const override {
      return real.encode_following(text);
    }
    [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const override {
      decoded += ids.size();
      return real.decode(ids);
    }
    [[nodiscard]] tokenizer::DecodedPrefix decode_prefix(
        std::span<const std::int32_t> ids) const override {
      decoded += ids.size();
      return real.decode_prefix(ids);
    }
    const TextEncoder& real;
    mutable std::size_t decoded = 0;
  };
  const std::string name = GENERATE(from_range(all_tokenizers));
  const auto encoder = encoder_of(name);
  const Counting counting(*encoder);
  std::string text;
  for (int i = 0; i < 300; ++i) text += "some words, and more\n";
  const std::vector<std::int32_t> tokens = encoder->encode(text);
  CAPTURE(name);
  CHECK(joined(pieces_of(counting, tokens)) == encoder->decode(tokens));
  CHECK(counting.decoded < 8 * tokens.size());
}

TEST_CASE("TextStream: text that later tokens may change comes at the end", "[data]") {
  /// Decodes tokens in the opposite order.
  struct Reversed : data::TextEncoder {
    [[nodiscard]] std::string identity() const override { return "reversed"; }
    [[nodiscard]] std::int64_t vocabulary() const override { return 256; }
    [[nodiscard]] std::vector<std::int32_t> encode(std::string_view) const override { return {}; }
    [[nodiscard]] std::size_t safe_cut(std::string_view) const override { return 0; }
    [[nodiscard]] std::vector<std::int32_t> encode_following(std::string_view) const override {
      return {};
    }
    [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const override {
      return {ids.rbegin(), ids.rend()};
    }
    [[nodiscard]] std::int64_t text_bytes(std::int32_t) const override { return 1; }
  };
  CHECK(pieces_of(Reversed(), {'a', 'b', 'c'}) == std::vector<std::string>{"", "", "", "cba"});
}

TEST_CASE("StopStrings: a string is found with the piece that completes it", "[data]") {
  StopStrings stop({"END", "\n\n", "é"});
  CHECK_FALSE(stop.complete("the E"));
  CHECK_FALSE(stop.complete("N"));
  CHECK_FALSE(stop.complete(""));
  CHECK(stop.complete("Ding"));
  CHECK_FALSE(stop.complete("ing"));  // that was earlier
  CHECK_FALSE(stop.complete("\n"));
  CHECK(stop.complete("\n"));
  CHECK(stop.complete("\n"));
  CHECK(stop.complete("caf\xC3\xA9 "));
  CHECK(stop.complete("all ENDs at once"));
}

TEST_CASE("StopStrings: pending text counts until it is replaced", "[data]") {
  StopStrings stop({"a\nb"});
  CHECK_FALSE(stop.complete("a", "\n"));
  CHECK(stop.complete("", "\nb"));
  CHECK_FALSE(stop.complete("", "\uFFFD"));
  CHECK_FALSE(stop.complete("\n", ""));
  CHECK(stop.complete("b"));
}

TEST_CASE("StopStrings: without strings nothing stops", "[data]") {
  StopStrings stop({});
  CHECK_FALSE(stop.complete("a", "b"));
}

TEST_CASE("StopStrings: pieces find what the whole text holds", "[data]") {
  std::mt19937 random(5);
  const auto letters = [&](std::size_t count) {
    std::string text;
    while (text.size() < count) text.push_back("ab"[random() % 2]);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> strings;
    while (strings.size() < 1 + random() % 3) strings.push_back(letters(1 + random() % 6));
    StopStrings stop(strings);
    std::string text;
    for (int piece = 0; piece < 12; ++piece) {
      const std::string grown = letters(random() % 4);
      const std::string pending = letters(random() % 3);
      const auto ends_in = [&](const std::string& whole) {
        for (const std::string& each : strings) {
          for (std::size_t at = 0; (at = whole.find(each, at)) != std::string::npos; ++at) {
            if (at + each.size() > text.size()) return true;
          }
        }
        return false;
      };
      const bool expected = ends_in(text + grown + pending);
      CAPTURE(round, strings, text, grown, pending);
      REQUIRE(stop.complete(grown, pending) == expected);
      text += grown;
    }
  }
}
