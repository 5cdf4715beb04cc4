#include "runtime/engine/generator.h"

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "tests/support/catch.h"

using dstrain::engine::choose_token;

TEST_CASE("choose_token: greedy takes the likeliest and the lowest among equals", "[engine]") {
  CHECK(choose_token(std::vector<float>{0.1F, 3, -2, 3}, {}, 0) == 1);
}

TEST_CASE("choose_token: draws follow the distribution", "[engine]") {
  const std::vector<float> logits{0, 1, 2, -50};
  const double temperature = GENERATE(1.0, 0.5);
  std::map<std::int32_t, int> drawn;
  constexpr int draws = 20'000;
  for (int i = 0; i < draws; ++i) {
    ++drawn[choose_token(logits, {.do_sample = true, .temperature = temperature},
                         static_cast<std::uint64_t>(i))];
  }
  double total = 0;
  for (const float logit : logits) total += std::exp(logit / temperature);
  for (int id = 0; id < 4; ++id) {
    const double share = std::exp(logits[static_cast<std::size_t>(id)] / temperature) / total;
    CHECK(drawn[id] / double(draws) == Catch::Approx(share).margin(0.015));
  }
}

TEST_CASE("choose_token: top_p keeps the likeliest that sum to it", "[engine]") {
  // Probabilities 0.5, 0.25, 0.15 and 0.1, in another order.
  const std::vector<float> logits{std::log(0.15F), std::log(0.5F), std::log(0.1F), std::log(0.25F)};
  struct Row {
    double top_p;
    std::int64_t top_k;
    std::set<std::int32_t> drawn;
  };
  const Row row = GENERATE(values<Row>({{0, 0, {1}},
                                        {0.49, 0, {1}},
                                        {0.51, 0, {1, 3}},
                                        {0.76, 0, {0, 1, 3}},
                                        {1, 0, {0, 1, 2, 3}},
                                        // Of the two likeliest the first has two thirds.
                                        {0.66, 2, {1}},
                                        {0.67, 2, {1, 3}}}));
  CAPTURE(row.top_p, row.top_k);
  std::set<std::int32_t> drawn;
  for (std::uint64_t i = 0; i < 300; ++i) {
    drawn.insert(
        choose_token(logits, {.do_sample = true, .top_k = row.top_k, .top_p = row.top_p}, i));
  }
  CHECK(drawn == row.drawn);
}

TEST_CASE("choose_token: top_k cuts the tail and seeds repeat", "[engine]") {
  const std::vector<float> logits{0, 1, 2, 1.5F};
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto token = choose_token(logits, {.do_sample = true, .top_k = 2, .seed = 9}, i);
    CHECK((token == 2 || token == 3));
    CHECK(token == choose_token(logits, {.do_sample = true, .top_k = 2, .seed = 9}, i));
  }
}
