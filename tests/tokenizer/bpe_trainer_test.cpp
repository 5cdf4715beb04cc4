#include "runtime/tokenizer/bpe_trainer.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/sha256.h"
#include "runtime/base/utf8.h"
#include "runtime/os/file.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/tokenizer/random_texts.h"

using namespace dstrain;
using tokenizer::LearntTokenizer;
using tokenizer::make_bpe_trainer;
using tokenizer::Tokenizer;

namespace {

const std::filesystem::path folder_of_golden_values = DSTRAIN_SOURCE_DIR "/tests/golden";

std::vector<std::string> random_texts(std::uint64_t first, std::uint64_t count) {
  const test::RandomTexts drawn(folder_of_golden_values / "tokenizers", {});
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < count; ++i) texts.push_back(drawn.text(first + i));
  return texts;
}

std::vector<std::string> texts_of(const nlohmann::json& row) {
  if (row.contains("texts")) return row["texts"].get<std::vector<std::string>>();
  if (row.contains("file")) {
    return {read_text_file(folder_of_golden_values / row["file"].get<std::string>(), mebibyte)};
  }
  return random_texts(row["first"].get<std::uint64_t>(), row["count"].get<std::uint64_t>());
}

LearntTokenizer learnt_from(const std::vector<std::string>& texts, std::int64_t vocabulary_size) {
  const auto trainer = make_bpe_trainer();
  for (const std::string& text : texts) trainer->add(text);
  return trainer->learn(vocabulary_size);
}

std::string hash_of(const std::string& text) {
  std::string hexadecimal;
  for (const auto byte : sha256(text)) {
    hexadecimal += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return hexadecimal;
}

Tokenizer loaded(const LearntTokenizer& learnt) {
  const test::TempDir folder;
  write_text_file(folder.path() / "tokenizer.json", learnt.tokenizer_json);
  write_text_file(folder.path() / "tokenizer_config.json", learnt.tokenizer_config_json);
  return Tokenizer::load(folder.path().string());
}

}  // namespace

TEST_CASE("Learnt vocabularies: the files are those of the library", "[tokenizer]") {
  const auto rows = nlohmann::json::parse(
      read_text_file(folder_of_golden_values / "learnt_tokenizers.json", mebibyte));
  for (const auto& row : rows) {
    CAPTURE(row.dump());
    const LearntTokenizer learnt = learnt_from(texts_of(row), row["asked"].get<std::int64_t>());
    CHECK(learnt.vocabulary_size == row["size"].get<std::int64_t>());
    CHECK(hash_of(learnt.tokenizer_json) == row["sha256"].get<std::string>());
  }
}

TEST_CASE("Learnt vocabularies: tokens give back every text", "[tokenizer]") {
  const auto asked = GENERATE(as<std::int64_t>(), 257, 258, 600, 2500);
  const LearntTokenizer learnt = learnt_from(random_texts(0, 2000), asked);
  CHECK(learnt.vocabulary_size == asked);
  const Tokenizer tokenizer = loaded(learnt);
  CHECK(tokenizer.vocabulary_size() == asked);
  CHECK(tokenizer.eos() == 0);
  CHECK(tokenizer.bos() == 0);
  CHECK(tokenizer.encode("<|endoftext|>") == std::vector<std::int32_t>{0});
  for (std::uint64_t number = 0; const std::string& drawn : random_texts(1'000'000, 300)) {
    std::string storage;
    const std::string text(valid_utf8(drawn, storage));
    const auto ids = tokenizer.encode(text);
    CAPTURE(number++, text, ids);
    REQUIRE(std::ranges::all_of(ids, [&](std::int32_t id) { return id > 0 && id < asked; }));
    REQUIRE(tokenizer.decode(ids) == text);
  }
}

TEST_CASE("Learnt vocabularies: neither order nor threads matter", "[tokenizer]") {
  const auto threads = GENERATE(as<std::size_t>(), 1, 2, 5);
  std::vector<std::string> texts = random_texts(0, 1000);
  const LearntTokenizer expected = learnt_from(texts, 1000);
  std::ranges::reverse(texts);
  const auto trainer = make_bpe_trainer();
  {
    std::vector<std::jthread> workers;
    for (std::size_t worker = 0; worker < threads; ++worker) {
      workers.emplace_back([&, worker] {
        for (std::size_t i = worker; i < texts.size(); i += threads) trainer->add(texts[i]);
      });
    }
  }
  CHECK(trainer->learn(1000).tokenizer_json == expected.tokenizer_json);
}

TEST_CASE("Learnt vocabularies: learning goes on after more texts", "[tokenizer]") {
  const auto trainer = make_bpe_trainer();
  trainer->add("low low lower");
  const std::string first = trainer->learn(300).tokenizer_json;
  CHECK(trainer->learn(300).tokenizer_json == first);
  trainer->add("newest newest widest");
  CHECK(trainer->learn(300).tokenizer_json ==
        learnt_from({"newest newest widest", "low low lower"}, 300).tokenizer_json);
}

TEST_CASE("Learnt vocabularies: long words and large texts take no longer", "[tokenizer]") {
  constexpr std::size_t bytes = std::size_t{1} << 20;
  std::string run;
  for (std::uint64_t state = 1; run.size() < bytes; state = state * 6364136223846793005 + 1) {
    run += "acgt"[state >> 62];
  }
  std::string lines;
  while (lines.size() < bytes) lines += "one word\n\n    and others; ";
  CHECK(learnt_from({run, std::string(bytes, 'a'), std::string(bytes, ' '), lines}, 2000)
            .vocabulary_size == 2000);
}

TEST_CASE("Learnt vocabularies: a size that bytes do not fit into is refused", "[tokenizer]") {
  const auto size = GENERATE(as<std::int64_t>(), 256, 0, -1, std::int64_t{1} << 31);
  CHECK(test::error_of([&] { make_bpe_trainer()->learn(size); }) ==
        fmt::format("a vocabulary of {} tokens cannot be learnt: it has 257, which are the 256 "
                    "bytes and <|endoftext|>, to 2147483647",
                    size));
}
