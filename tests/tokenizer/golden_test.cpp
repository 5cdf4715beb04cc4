// Tokens and texts against those of the Python libraries, see tests/golden/tokenizers.
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/os/file.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/support/catch.h"
#include "tests/tokenizer/random_texts.h"

using namespace dstrain;
using tokenizer::SpecialText;
using tokenizer::SpecialTokens;
using tokenizer::Tokenizer;

namespace {

const std::filesystem::path golden = DSTRAIN_SOURCE_DIR "/tests/golden/tokenizers";

nlohmann::json expected_of(const std::string& name) {
  return nlohmann::json::parse(read_text_file(golden / name / "expected.json", mebibyte));
}

std::string bytes_of(const std::string& hexadecimal) {
  std::string bytes;
  for (std::size_t i = 0; i < hexadecimal.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hexadecimal.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::string family() {
  return GENERATE(as<std::string>(), "gpt2", "gpt2_files", "llama3", "qwen2", "tekken", "roberta",
                  "llama2", "mistral", "unknowns", "unknowns_fused", "splits", "t5", "albert",
                  "sentencepiece_bpe", "sentencepiece_unigram");
}

}  // namespace

TEST_CASE("Golden tokenizers: written texts have the library's tokens", "[tokenizer]") {
  const std::string name = family();
  CAPTURE(name);
  const auto tokenizer = Tokenizer::load((golden / name).string());
  const nlohmann::json expected = expected_of(name);
  for (const auto& row : expected["cases"]) {
    CAPTURE(row.dump());
    const std::string text = row.contains("hex") ? bytes_of(row["hex"].get<std::string>())
                                                 : row["text"].get<std::string>();
    const auto ids = tokenizer.encode(text);
    CHECK(ids == row["ids"].get<std::vector<std::int32_t>>());
    CHECK(tokenizer.encode(text, SpecialTokens::added) ==
          row.value("special", row["ids"]).get<std::vector<std::int32_t>>());
    CHECK(tokenizer.decode(ids) == row["decoded"].get<std::string>());
    CHECK(tokenizer.decode(ids, SpecialText::skipped) ==
          row.value("skipped", row["decoded"]).get<std::string>());
  }
}

TEST_CASE("Golden tokenizers: random texts have the library's tokens", "[tokenizer]") {
  const std::string name = family();
  CAPTURE(name);
  const auto tokenizer = Tokenizer::load((golden / name).string());
  const nlohmann::json expected = expected_of(name);
  const test::RandomTexts texts(golden, expected["specials"].get<std::vector<std::string>>());
  std::uint64_t block = 0;
  for (const auto& hash : expected["blocks"]) {
    CAPTURE(block);
    CHECK(texts.block_hash(tokenizer, block++) == hash.get<std::string>());
  }
}
