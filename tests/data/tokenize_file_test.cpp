#include "runtime/data/tokenize_file.h"

#include <string>
#include <vector>

#include <sys/mman.h>

#include <fmt/format.h>

#include "runtime/data/hugging_face_encoder.h"
#include "runtime/data/token_set.h"
#include "tests/data/word_encoder.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using Ids = std::vector<std::int32_t>;

/// What a text becomes in a file.
Ids tokenized(std::string_view text, const data::TextEncoder& encoder) {
  const TempDir folder;
  const auto path = folder.path() / "tokens";
  data::tokenize_text({"text", std::as_bytes(std::span(text))}, encoder, path);
  const auto set = data::TokenSet::open(path);
  REQUIRE(set.ok());
  CHECK(set.value().records() == 1);
  Ids ids(static_cast<std::size_t>(set.value().ids().size()));
  set.value().ids().read(0, ids, encoder.vocabulary(), "tokens");
  return ids;
}

std::string lines(std::size_t bytes) {
  std::string text;
  for (int number = 0; text.size() < bytes; ++number) {
    text += fmt::format("Line {} of a long text, which goes on.\n\n  \u00c9t\u00e9!", number);
  }
  return text;
}

/// Knows no place for a cut, or fails in a piece that follows one.
class BadEncoder : public WordEncoder {
 public:
  explicit BadEncoder(std::size_t cut) : cut_(cut) {}

  [[nodiscard]] std::size_t safe_cut(std::string_view /*text*/) const override { return cut_; }
  [[nodiscard]] Ids encode_following(std::string_view text) const override {
    fail(ErrorCode::input, "cannot encode {} bytes", text.size());
  }

 private:
  std::size_t cut_;
};

}  // namespace

TEST_CASE("TokenizeRecords: conversations without an answer are told with their roles", "[data]") {
  const auto chat = data::ChatTemplate::parse(
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
      "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}",
      {});
  const WordEncoder encoder({.chat = std::make_unique<data::ChatTemplate>(chat.value())});
  const TempDir folder;
  const auto error = [&](std::string_view text) {
    return error_of([&] {
      data::tokenize_records({"d.jsonl", std::as_bytes(std::span(text))}, encoder, {},
                             folder.path() / "tokens");
    });
  };
  const std::string question = R"({"messages": [{"role": "user", "content": "ab"}]})";
  const std::string answer = R"({"messages": [{"role": "assistant", "content": "cd"}]})";
  CHECK(error(question + "\n" + R"({"messages": [{"role": "system", "content": "ef"}]})") ==
        "d.jsonl: no conversation has an answer (role assistant) to learn; the roles are system, "
        "user");
  CHECK(error(question + "\n" + answer) == "");
}

TEST_CASE("TokenizeText: pieces on all threads give the tokens of the whole", "[data]") {
  const std::string text = lines(std::size_t{5} << 20);
  const data::HuggingFaceEncoder encoder(DSTRAIN_SOURCE_DIR "/tests/golden/tokenizers/gpt2");
  CHECK((tokenized(text, encoder) == encoder.encode(text)));
}

TEST_CASE("TokenizeText: small texts and one of a single word", "[data]") {
  const WordEncoder encoder;
  const auto size = GENERATE(as<std::size_t>(), 0, 1, 3 << 20);
  const std::string text(size, 'a');
  CHECK(tokenized(text, encoder) == encoder.encode(text));
}

TEST_CASE("TokenizeText: an exception from a piece is rethrown", "[data]") {
  const std::string text = lines(std::size_t{2} << 20);
  const TempDir folder;
  CHECK(error_of([&] {
          data::tokenize_text({"text", std::as_bytes(std::span(text))}, BadEncoder(text.size() - 9),
                              folder.path() / "tokens");
        }) == "cannot encode 9 bytes");
}

TEST_CASE("TokenizeText: a gigabyte without a possible cut is refused", "[data]") {
  constexpr std::size_t bytes = (std::size_t{1} << 30) + 1;
  void* const zeros =
      ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(zeros != MAP_FAILED);
  const TempDir folder;
  CHECK(error_of([&] {
          data::tokenize_text({"text", std::span(static_cast<const std::byte*>(zeros), bytes)},
                              BadEncoder(0), folder.path() / "tokens");
        }) ==
        "text: the tokenizer cannot cut the text within 1073741824 bytes from byte 0 on, which is "
        "too much to encode at once; give it in parts, or as JSON lines");
  ::munmap(zeros, bytes);
}

}  // namespace dstrain::test
