// Which beams go on and which texts they become. tests/engine/generator_test.cpp compares whole
// searches with transformers.
#include "runtime/engine/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "runtime/numeric/philox.h"
#include "tests/support/catch.h"

using namespace dstrain;
using engine::BeamOptions;
using engine::BeamSearch;
using engine::EarlyStopping;

namespace {

using Tokens = std::vector<std::int32_t>;
constexpr std::size_t vocabulary = 16;

/// Log probabilities that depend on all tokens so far.
std::vector<float> scores_after(std::span<const std::int32_t> tokens, std::uint64_t seed) {
  std::uint64_t index = 1;
  for (const std::int32_t token : tokens) {
    index = index * 31 + static_cast<std::uint64_t>(token) + 7;
  }
  std::vector<double> weights;
  double total = 0;
  for (std::uint64_t token = 0; token < vocabulary; ++token) {
    const auto draw = uniform_below({.seed = seed, .index = index * 64 + token}, 1'000'000);
    weights.push_back(std::exp(static_cast<double>(draw) / 250'000));
    total += weights.back();
  }
  std::vector<float> scores;
  for (const double weight : weights)
    scores.push_back(static_cast<float>(std::log(weight / total)));
  return scores;
}

/// Runs a search to its end, and returns its steps.
int run(BeamSearch& search, std::size_t beams, std::uint64_t seed) {
  for (int steps = 1;; ++steps) {
    for (std::size_t place = 0; !search.complete(); ++place) {
      search.add(place, scores_after(search.tokens(place), seed));
    }
    if (search.advance() == BeamSearch::State::ended) return steps;
    std::vector<bool> is_written(beams);
    for (const auto& copy : search.copies()) is_written[copy.to] = true;
    for (const auto& copy : search.copies()) REQUIRE_FALSE(is_written[copy.from]);
  }
}

float score_of(const Tokens& tokens, std::uint64_t seed) {
  float sum = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    sum += scores_after(std::span(tokens).first(i), seed)[static_cast<std::size_t>(tokens[i])];
  }
  return sum;
}

/// The scores of a step in which these tokens have these, and others have very little.
std::vector<float> only(const std::map<std::size_t, float>& tokens) {
  std::vector<float> scores(vocabulary, -1000);
  for (const auto& [token, score] : tokens) scores[token] = score;
  return scores;
}

}  // namespace

TEST_CASE("BeamSearch: as many beams as tokens find the likeliest pair", "[engine]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    BeamSearch search({.num_beams = vocabulary, .num_return_sequences = 3, .length_penalty = 0}, {},
                      2);
    CHECK(run(search, vocabulary, seed) == 2);
    std::vector<std::pair<float, Tokens>> all;
    for (std::int32_t first = 0; first < static_cast<int>(vocabulary); ++first) {
      for (std::int32_t second = 0; second < static_cast<int>(vocabulary); ++second) {
        all.emplace_back(score_of({first, second}, seed), Tokens{first, second});
      }
    }
    std::ranges::sort(all, std::ranges::greater());
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(search.texts()[i].tokens == all[i].second);
      CHECK(search.texts()[i].score == all[i].first);
    }
  }
}

TEST_CASE("BeamSearch: scores of texts are sums divided by powers of their lengths", "[engine]") {
  const double penalty = GENERATE(0.0, 0.5, 1.0, 2.0, -1.0);
  const auto stopping = GENERATE(EarlyStopping::no, EarlyStopping::yes, EarlyStopping::never);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(penalty, seed);
    BeamSearch search({.num_beams = 4,
                       .num_return_sequences = 4,
                       .length_penalty = penalty,
                       .early_stopping = stopping},
                      {2, 5}, 9);
    run(search, 4, seed);
    float last = std::numeric_limits<float>::infinity();
    for (const BeamSearch::Text& text : search.texts()) {
      const auto length = static_cast<double>(text.tokens.size());
      CHECK(text.score ==
            Catch::Approx(score_of(text.tokens, seed) / std::pow(length, penalty)).epsilon(1e-5));
      CHECK(text.score <= last);
      last = text.score;
      for (const std::int32_t token : std::span(text.tokens).first(text.tokens.size() - 1)) {
        CHECK((token != 2 && token != 5));
      }
      CHECK((text.tokens.back() == 2 || text.tokens.back() == 5 || text.tokens.size() == 9));
    }
  }
}

TEST_CASE("BeamSearch: a beam stays in its place if it goes on", "[engine]") {
  BeamSearch search({.num_beams = 3}, {0}, 9);
  search.add(0, only({{7, -1.F}, {8, -2.F}, {9, -3.F}}));
  CHECK(search.advance() == BeamSearch::State::grows);
  CHECK(search.copies().size() == 2);
  CHECK(search.tokens(0).front() == 7);
  CHECK(search.tokens(1).front() == 8);
  CHECK(search.tokens(2).front() == 9);
  // The last beam has the best two continuations, the first one has none.
  search.add(0, only({{1, -50.F}}));
  search.add(1, only({{1, -5.F}}));
  search.add(2, only({{4, -1.F}, {6, -2.F}}));
  CHECK(search.advance() == BeamSearch::State::grows);
  REQUIRE(search.copies().size() == 1);
  CHECK(search.copies()[0].from == 2);
  CHECK(search.copies()[0].to == 0);
  CHECK(std::ranges::equal(search.tokens(0), Tokens{9, 6}));
  CHECK(std::ranges::equal(search.tokens(1), Tokens{8, 1}));
  CHECK(std::ranges::equal(search.tokens(2), Tokens{9, 4}));
}

TEST_CASE("BeamSearch: only the best continuations become texts", "[engine]") {
  BeamSearch search({.num_beams = 2, .num_return_sequences = 2, .length_penalty = 0}, {0, 1}, 2);
  // Token 1 ends a text, but is the third.
  search.add(0, only({{0, -2.F}, {1, -4.F}, {5, -1.F}, {6, -3.F}}));
  CHECK(search.advance() == BeamSearch::State::grows);
  search.add(0, only({{8, -50.F}}));
  search.add(1, only({{8, -50.F}}));
  CHECK(search.advance() == BeamSearch::State::ended);
  CHECK(search.texts()[0].tokens == Tokens{0});
  CHECK(search.texts()[1].tokens == Tokens{5, 8});
}

TEST_CASE("BeamSearch: early_stopping says when a search ends", "[engine]") {
  struct Row {
    EarlyStopping stopping;
    double penalty;
    int steps;
  };
  // After the second step there are two texts, with sums of -0.3 and -0.4. The best beam has -1.5
  // then, and -1.82 if it grows to ten tokens.
  const auto row = GENERATE(values<Row>({{EarlyStopping::yes, 1, 2},
                                         {EarlyStopping::no, 1, 2},
                                         {EarlyStopping::no, 2, 2},
                                         {EarlyStopping::never, 1, 10},
                                         {EarlyStopping::never, 0, 2},
                                         {EarlyStopping::no, -1, 2}}));
  CAPTURE(static_cast<int>(row.stopping), row.penalty);
  BeamSearch search({.num_beams = 2, .length_penalty = row.penalty, .early_stopping = row.stopping},
                    {0}, 10);
  search.add(0, only({{3, -0.1F}, {4, -0.2F}}));
  int steps = 1;
  for (auto state = search.advance(); state == BeamSearch::State::grows; ++steps) {
    const bool second = steps == 1;
    for (std::size_t place = 0; place < 2; ++place) {
      search.add(place, second ? only({{0, -0.2F}, {3, -1.4F}}) : only({{3, -0.04F}}));
    }
    state = search.advance();
  }
  CHECK(steps == row.steps);
}

TEST_CASE("BeamSearch: every step finds beams that go on", "[engine]") {
  CHECK(BeamSearch::beams_max(16, 0) == 16);
  CHECK(BeamSearch::beams_max(16, 1) == 8);
  CHECK(BeamSearch::beams_max(16, 3) == 4);
  // The likeliest tokens are those that end a text.
  BeamSearch search({.num_beams = 4, .early_stopping = EarlyStopping::never}, {3, 4, 5}, 9);
  const std::vector<float> scores = only({{3, -1.F}, {4, -1.F}, {5, -1.F}});
  search.add(0, scores);
  CHECK(search.advance() == BeamSearch::State::grows);
  for (std::size_t place = 0; place < 4; ++place) search.add(place, scores);
  search.advance();
  for (std::size_t place = 0; place < 4; ++place) {
    CHECK(std::ranges::none_of(search.tokens(place),
                               [](int token) { return token >= 3 && token <= 5; }));
  }
}
