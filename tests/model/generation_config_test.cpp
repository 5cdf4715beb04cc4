// Which defaults of generation a model's files name.
#include "runtime/model/generation_config.h"

#include <nlohmann/json.hpp>

#include "runtime/model/hf_names.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace dstrain;
using model::GenerationConfig;
using model::read_generation_config;
using Ids = std::vector<std::int32_t>;

namespace {

std::vector<model::CompanionFile> generation_file(const std::string& text) {
  return {{"tokenizer.json", "not read"}, {"generation_config.json", text}};
}

}  // namespace

TEST_CASE("GenerationConfig: the end tokens of both files count", "[model]") {
  struct Row {
    std::string config;
    std::string own;  ///< generation_config.json; empty: none
    Ids ends;
    Ids own_ends{};
  };
  const Row row = GENERATE(values<Row>({
      {R"({"eos_token_id": 7})", "", {7}},
      {R"({"eos_token_id": [128001, 128008, 128009]})", "", {128001, 128008, 128009}},
      {R"({"eos_token_id": [7, 8, 7]})", "", {7, 8}},
      {R"({"eos_token_id": []})", "", {}},
      {R"({"eos_token_id": null})", "", {}},
      {"{}", "", {50256}},  // the class's own
      {R"({"eos_token_id": 7})", R"({"eos_token_id": [8, 9]})", {8, 9, 7}, {8, 9}},
      {R"({"eos_token_id": [7, 8]})", R"({"eos_token_id": 8})", {8, 7}, {8}},
      {R"({"eos_token_id": 7})", R"({"do_sample": true})", {7}},
      {R"({"eos_token_id": 7})", R"({"eos_token_id": null})", {7}},
      {R"({"eos_token_id": null})", R"({"eos_token_id": 9})", {9}, {9}},
      {"{}", R"({"eos_token_id": 9})", {9}, {9}},
      {"{}", R"({"do_sample": true})", {50256}},
  }));
  CAPTURE(row.config, row.own);
  const auto companions =
      row.own.empty() ? std::vector<model::CompanionFile>() : generation_file(row.own);
  const GenerationConfig config = read_generation_config("m", row.config, 50256, companions);
  CHECK(config.end_tokens == row.ends);
  CHECK(config.own_end_tokens == row.own_ends);
  CHECK(config.file == (row.own.empty() ? "m/config.json" : "m/generation_config.json"));
  CHECK(config.has_own_file == !row.own.empty());
}

TEST_CASE("GenerationConfig: settings are read from the own file alone", "[model]") {
  const GenerationConfig config = read_generation_config(
      "m", R"({"temperature": 0.1, "min_p": 0.2})", {},
      generation_file(R"({"do_sample": true, "temperature": 0.6, "top_k": null, "top_p": 0.9,
                          "max_length": 4096, "repetition_penalty": 1.05, "min_new_tokens": 3,
                          "min_length": 5, "num_beams": 4, "num_return_sequences": 2,
                          "length_penalty": 0.5, "early_stopping": true})"));
  CHECK(config.do_sample == true);
  CHECK(config.temperature == 0.6);
  CHECK_FALSE(config.top_k);
  CHECK(config.top_p == 0.9);
  CHECK_FALSE(config.min_p);
  CHECK(config.repetition_penalty == 1.05);
  CHECK(config.min_new_tokens == 3);
  CHECK(config.min_length == 5);
  CHECK_FALSE(config.max_new_tokens);
  CHECK(config.max_length == 4096);
  CHECK(config.num_beams == 4);
  CHECK(config.length_penalty == 0.5);
  CHECK(config.early_stopping == "true");
  CHECK(config.num_return_sequences == 2);
  CHECK(config.unsupported.empty());
  CHECK(read_generation_config("m", R"({"min_p": 0.2})", {}, {}).min_p == 0.2);
}

TEST_CASE("GenerationConfig: settings that generation lacks are named", "[model]") {
  const auto unsupported = [](const std::string& text) {
    return read_generation_config("m", "{}", {}, generation_file(text)).unsupported;
  };
  CHECK(unsupported(
            R"({"typical_p": 0.9, "num_beams": 4, "num_beam_groups": 2, "suppress_tokens": [3],
                        "no_repeat_ngram_size": 3, "penalty_alpha": 0.6, "top_h": 0.4})") ==
        std::vector<std::string>{"no_repeat_ngram_size 3", "num_beam_groups 2", "penalty_alpha 0.6",
                                 "suppress_tokens [3]", "top_h 0.4", "typical_p 0.9"});
  CHECK(unsupported(R"({"typical_p": 1.0, "num_beams": 1, "suppress_tokens": null,
                        "no_repeat_ngram_size": 0, "token_healing": false, "num_beam_groups": 1,
                        "diversity_penalty": 0.0, "pad_token_id": 0})")
            .empty());
}

TEST_CASE("GenerationConfig: a tokenizer's tokens replace those that lack them", "[model]") {
  const auto written = [](const std::string& ends, const model::TextTokens& tokens) {
    return nlohmann::json::parse(
        model::with_text_tokens(R"({"eos_token_id": )" + ends + "}", tokens));
  };
  CHECK(written("[5, 6, 7]", {.begin = 1, .end = 6}).at("eos_token_id") ==
        nlohmann::json::array({5, 6, 7}));
  CHECK(written("[5, 7]", {.begin = 1, .end = 6}).at("eos_token_id") == 6);
  CHECK(written("[5, 7]", {}).at("eos_token_id").is_null());
  CHECK(written("5", {.begin = 1, .end = 6}) ==
        nlohmann::json({{"bos_token_id", 1}, {"eos_token_id", 6}}));
}

TEST_CASE("GenerationConfig: values of another type are refused by name", "[model]") {
  const auto error = [](const std::string& text) {
    return test::error_of([&] { read_generation_config("m", "{}", {}, generation_file(text)); });
  };
  const std::string file = "m/generation_config.json: ";
  CHECK(error(R"({"eos_token_id": "</s>"})") ==
        file + "eos_token_id must be a token id or a list of token ids, got \"</s>\"");
  CHECK(error(R"({"eos_token_id": [1, -1]})") ==
        file + "eos_token_id must be a token id or a list of token ids, got [1,-1]");
  CHECK(error(R"({"do_sample": 1})") == file + "do_sample must be true or false, got 1");
  CHECK(error(R"({"temperature": "hot"})") == file + "temperature must be a number, got \"hot\"");
  CHECK(error(R"({"min_p": true})") == file + "min_p must be a number, got true");
  CHECK(error(R"({"num_beams": "4"})") == file + "num_beams must be a whole number, got \"4\"");
  CHECK(error(R"({"early_stopping": "soon"})") ==
        file + "early_stopping must be true, false or \"never\", got \"soon\"");
  CHECK(error(R"({"top_k": 1.5})") == file + "top_k must be a whole number, got 1.5");
}
