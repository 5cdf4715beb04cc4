#include "runtime/data/hugging_face_encoder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
namespace fs = std::filesystem;

namespace {

const fs::path tokenizers = fs::path(DSTRAIN_SOURCE_DIR) / "tests/golden/tokenizers";

std::vector<std::int32_t> beginning_of(const char* tokenizer) {
  return data::HuggingFaceEncoder(tokenizers / tokenizer).beginning();
}

}  // namespace

TEST_CASE("HuggingFaceEncoder: a text begins as its tokenizer says", "[data]") {
  const auto llama = tokenizer::Tokenizer::load(tokenizers / "llama2");
  CHECK(beginning_of("llama2") == std::vector<std::int32_t>{llama.id("<s>").value()});
  CHECK(beginning_of("gpt2").empty());
  CHECK(beginning_of("t5").empty());  // adds a token at the end only
}

TEST_CASE("HuggingFaceEncoder: a text ends as its tokenizer says", "[data]") {
  const auto ending_of = [](const char* tokenizer) {
    return data::HuggingFaceEncoder(tokenizers / tokenizer).ending();
  };
  CHECK(ending_of("t5") == std::vector<std::int32_t>{1});
  CHECK(ending_of("llama2").empty());
  CHECK(ending_of("gpt2").empty());
}

TEST_CASE("HuggingFaceEncoder: text survives a round trip without special tokens", "[data]") {
  const data::HuggingFaceEncoder encoder(tokenizers / "gpt2");
  const std::vector<std::int32_t> ids = encoder.encode("a text<|endoftext|> and more");
  CHECK(std::ranges::count(ids, encoder.end_of_text().value()) == 1);
  CHECK(encoder.decode(ids) == "a text and more");
  CHECK(encoder.chat_template() == nullptr);
  CHECK_FALSE(encoder.no_chat_template().empty());
}

TEST_CASE("HuggingFaceEncoder: any changed byte of its files changes the identity", "[data]") {
  const test::TempDir folder;
  const fs::path copy = folder.path() / "copy";
  fs::copy(tokenizers / "gpt2", copy);
  const std::string identity = data::HuggingFaceEncoder(copy).identity();
  CHECK(identity == data::HuggingFaceEncoder(tokenizers / "gpt2").identity());
  std::ofstream(copy / "tokenizer_config.json", std::ios::app) << " ";
  CHECK(identity != data::HuggingFaceEncoder(copy).identity());
  CHECK(data::has_tokenizer(copy));
  CHECK_FALSE(data::has_tokenizer(folder.path()));
  CHECK_THROWS_WITH(data::make_encoder(folder.path()),
                    Catch::Matchers::ContainsSubstring("holds no tokenizer"));
}
