// Which token follows, beside what transformers' generate draws from (tests/golden/choices.json).
#include "runtime/engine/token_choice.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using dstrain::engine::choice_draw;
using dstrain::engine::ChoiceOptions;
using dstrain::engine::TokenChooser;
using nlohmann::json;

namespace {

struct Case {
  ChoiceOptions options;
  std::vector<float> logits;
  std::vector<std::int32_t> context;
  std::int64_t new_tokens = 0;
};

Case case_of(const json& row) {
  const json& given = row.at("options");
  Case result;
  ChoiceOptions& options = result.options;
  options.do_sample = given.value("do_sample", true);
  options.temperature = given.value("temperature", 1.0);
  options.top_k = given.value("top_k", 0);
  options.top_p = given.value("top_p", 1.0);
  options.min_p = given.value("min_p", 0.0);
  options.repetition_penalty = given.value("repetition_penalty", 1.0);
  options.min_new_tokens = given.value("min_new_tokens", 0);
  options.end_tokens = given.value("eos_token_id", std::vector<std::int32_t>());
  for (const json& logit : row.at("logits")) result.logits.push_back(logit.get<float>());
  result.context = row.at("context").get<std::vector<std::int32_t>>();
  result.new_tokens = row.at("new_tokens");
  return result;
}

TokenChooser chooser_of(const ChoiceOptions& options, const std::vector<float>& logits) {
  return {options, std::ssize(logits)};
}

std::int32_t chosen(const ChoiceOptions& options,
                    std::vector<float> logits,
                    std::int64_t index = 0,
                    std::uint64_t variant = 0) {
  return chooser_of(options, logits).choose(logits, {}, index, variant);
}

/// The first candidate whose probability, with those before it, exceeds the draw.
std::int32_t at_draw(const std::vector<TokenChooser::Candidate>& candidates, double draw) {
  double mass = 0;
  for (const auto& each : candidates) {
    mass += each.probability;
    if (mass > draw) return each.token;
  }
  return candidates.back().token;
}

std::vector<float> normal_logits(std::size_t count, float spread, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

/// What the options leave, by sorting all tokens.
std::vector<TokenChooser::Candidate> sorted_candidates(const std::vector<float>& logits,
                                                       const ChoiceOptions& options) {
  std::vector<TokenChooser::Candidate> all;
  const double largest = *std::max_element(logits.begin(), logits.end());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    all.push_back({static_cast<std::int32_t>(i), std::exp(double(logits[i]) - largest)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  double total = 0;
  for (const auto& each : all) total += each.probability;
  double before = 0;
  std::size_t count = 0;
  while (count < all.size() && (count == 0 || before < options.top_p * total) &&
         all[count].probability >= options.min_p) {
    before += all[count++].probability;
  }
  all.resize(count);
  for (auto& each : all) each.probability /= before;
  return all;
}

}  // namespace

TEST_CASE("TokenChooser: the candidates are those of transformers", "[engine]") {
  std::ifstream file(DSTRAIN_SOURCE_DIR "/tests/golden/choices.json");
  for (const json& row : json::parse(file)) {
    CAPTURE(row.at("options").dump(), row.at("logits").dump());
    const Case given = case_of(row);
    TokenChooser chooser(given.options, std::ssize(given.logits));
    std::vector<float> logits = given.logits;
    const auto expected = row.at("candidates").get<std::vector<std::pair<std::int32_t, double>>>();
    const auto first = chooser.choose(logits, given.context, given.new_tokens, 3);
    if (!given.options.do_sample) {
      CHECK(first == expected.at(0).first);
      continue;
    }
    logits = given.logits;
    const auto found = chooser.candidates(logits, given.context, given.new_tokens);
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].token == expected[i].first);
      CHECK(std::abs(found[i].probability - expected[i].second) < 1e-6);
    }
    CHECK(first == at_draw(found, choice_draw(given.options.seed, 3, given.new_tokens)));
  }
}

TEST_CASE("TokenChooser: greedy takes the likeliest and the lowest among equals", "[engine]") {
  CHECK(chosen({}, {0.1F, 3, -2, 3}) == 1);
  CHECK(chosen({}, {-0.0F, 0, -2, 0}) == 0);
  CHECK(chosen({}, std::vector<float>(21, -7)) == 0);
}

TEST_CASE("TokenChooser: a large vocabulary is cut as by sorting all of it", "[engine]") {
  // Peaked, as trained models are, and flat, as untrained ones are; rounding makes equals.
  const float spread = GENERATE(6.0F, 2.0F, 0.01F, 0.0F);
  const double top_p = GENERATE(1.0, 0.9, 0.3);
  const double min_p = GENERATE(0.0, 0.05);
  CAPTURE(spread, top_p, min_p);
  const ChoiceOptions options{.do_sample = true, .top_p = top_p, .min_p = min_p};
  std::vector<float> logits = normal_logits(5003, spread, 1);
  for (float& logit : logits) logit = std::round(logit * 1024) / 1024;
  const auto expected = sorted_candidates(logits, options);
  TokenChooser chooser = chooser_of(options, logits);
  std::vector<float> work = logits;
  const auto found = chooser.candidates(work, {}, 0);
  // Sums of float weights may place a cut elsewhere among tokens of 1e-6 together.
  const auto apart = std::abs(std::ssize(found) - std::ssize(expected));
  CHECK(static_cast<double>(apart) * expected.back().probability < 1e-6);
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    REQUIRE(found[i].token == expected[i].token);
    REQUIRE(std::abs(found[i].probability - expected[i].probability) < 1e-6);
  }
  for (std::int64_t index = 0; index < 50; ++index) {
    work = logits;
    CHECK(chooser.choose(work, {}, index, 0) == at_draw(found, choice_draw(42, 0, index)));
  }
}

TEST_CASE("TokenChooser: top_k keeps the equals of the last one in any order", "[engine]") {
  std::vector<float> logits(3000);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i / 3);
  const int order = GENERATE(0, 1, 2);
  if (order == 1) std::reverse(logits.begin(), logits.end());
  if (order == 2) std::shuffle(logits.begin(), logits.end(), std::mt19937(1));
  const std::int64_t top_k = GENERATE(1, 4, 100, 2999);
  CAPTURE(order, top_k);
  TokenChooser chooser({.do_sample = true, .temperature = 1000, .top_k = top_k}, 3000);
  std::vector<float> work = logits;
  const auto found = chooser.candidates(work, {}, 0);
  CHECK(std::ssize(found) == (top_k + 2) / 3 * 3);
  const float least =
      *std::max_element(logits.begin(), logits.end()) - static_cast<float>((top_k + 2) / 3 - 1);
  for (const auto& each : found) CHECK(logits[static_cast<std::size_t>(each.token)] >= least);
}

TEST_CASE("TokenChooser: draws follow the distribution", "[engine]") {
  const std::vector<float> logits{0, 1, 2, -50};
  const double temperature = GENERATE(1.0, 0.5);
  std::map<std::int32_t, int> drawn;
  constexpr int draws = 20'000;
  for (int i = 0; i < draws; ++i) {
    ++drawn[chosen({.do_sample = true, .temperature = temperature}, logits, i / 4,
                   static_cast<std::uint64_t>(i % 4))];
  }
  double total = 0;
  for (const float logit : logits) total += std::exp(logit / temperature);
  for (int id = 0; id < 4; ++id) {
    const double share = std::exp(logits[static_cast<std::size_t>(id)] / temperature) / total;
    CHECK(drawn[id] / double(draws) == Catch::Approx(share).margin(0.015));
  }
}

TEST_CASE("TokenChooser: a token depends on seed and variant and its number alone", "[engine]") {
  const std::vector<float> logits = normal_logits(200, 0.1F, 7);
  const auto text = [&](std::uint64_t seed, std::uint64_t variant, TokenChooser& chooser) {
    std::vector<std::int32_t> tokens;
    for (std::int64_t index = 0; index < 8; ++index) {
      std::vector<float> work = logits;
      tokens.push_back(chooser.choose(work, tokens, index, variant));
    }
    return std::pair(seed, tokens);
  };
  const auto of = [&](std::uint64_t seed, std::uint64_t variant) {
    TokenChooser chooser({.do_sample = true, .top_k = 150, .seed = seed}, 200);
    return text(seed, variant, chooser).second;
  };
  CHECK(of(9, 0) == of(9, 0));
  CHECK(of(9, 0) != of(9, 1));
  CHECK(of(9, 0) != of(10, 0));
  TokenChooser shared({.do_sample = true, .top_k = 150, .seed = 9}, 200);
  text(9, 4, shared);  // another text of the batch
  CHECK(text(9, 1, shared).second == of(9, 1));
}

TEST_CASE("TokenChooser: the draw of a number is fixed", "[engine]") {
  // By the same formulas in Python.
  CHECK(choice_draw(42, 0, 0) == 0x1.57cb4abb7f052p-2);
  CHECK(choice_draw(42, 3, 7) == 0x1.18482e872054bp-1);
  double sum = 0;
  for (std::int64_t index = 0; index < 1000; ++index) {
    const double draw = choice_draw(42, 1, index);
    CHECK((draw > 0 && draw < 1));
    sum += draw;
  }
  CHECK(sum / 1000 == Catch::Approx(0.5).margin(0.03));
}

TEST_CASE("TokenChooser: end tokens wait for min_new_tokens", "[engine]") {
  const ChoiceOptions options{.min_new_tokens = 2, .end_tokens = {1, 3, 99}};
  const std::vector<float> logits{0, 9, 1, 8};
  CHECK(chosen(options, logits, 1) == 2);
  CHECK(chosen(options, logits, 2) == 1);
}

TEST_CASE("TokenChooser: logits that are not finite are refused by token", "[engine]") {
  const float bad = GENERATE(std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(), std::nanf(""));
  std::vector<float> logits(300, 1);
  logits[257] = bad;
  CHECK_THAT(dstrain::test::error_of([&] { chosen({.do_sample = true}, logits, 4); }),
             Catch::Matchers::ContainsSubstring("the logits of new token 5 hold ") &&
                 Catch::Matchers::ContainsSubstring("(of id 257)"));
}

TEST_CASE("TokenChooser: options that leave no token are refused", "[engine]") {
  const bool do_sample = GENERATE(false, true);
  CHECK_THAT(dstrain::test::error_of([&] {
               chosen({.do_sample = do_sample, .min_new_tokens = 1, .end_tokens = {0, 1}}, {1, 2});
             }),
             Catch::Matchers::ContainsSubstring("new token 1 cannot be chosen"));
  CHECK_THAT(dstrain::test::error_of([&] {
               chosen({.do_sample = true, .temperature = 1e-38}, {1, 9});
             }),
             Catch::Matchers::ContainsSubstring("leave no finite score"));
}
