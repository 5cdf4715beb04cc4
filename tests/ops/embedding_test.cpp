#include "runtime/ops/embedding.h"

#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

constexpr std::int64_t vocabulary = 7;  // fewer than tokens: rows repeat
constexpr std::int64_t positions = 12;
constexpr std::int64_t embedded_sequences = 3;
constexpr std::int64_t length = 9;

TEST_CASE("Embedding: token row plus position row", "[ops][embedding]") {
  const bool with_positions = GENERATE(true, false);
  const std::int64_t columns = GENERATE(1, 5, 130);
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  test::TypedValues table(test::random_values(vocabulary * columns, 1), dtype);
  test::TypedValues places(test::random_values(positions * columns, 2), dtype);
  auto tokens = test::random_tokens(embedded_sequences * length, 3, vocabulary);
  test::TypedValues output(test::random_values(embedded_sequences * length * columns, 3), dtype);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::embedding_forward(
      {.tokens = HostView(tokens, {embedded_sequences, length}),
       .token_table = table.view({vocabulary, columns}),
       .position_table =
           with_positions ? TensorView(places.view({positions, columns})) : TensorView{},
       .output = output.view({embedded_sequences, length, columns})},
      stream);
  std::vector<float> expected;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto column = static_cast<std::size_t>(j);
      const auto width = static_cast<std::size_t>(columns);
      const float place = with_positions ? places.read()[row % length * width + column] : 0.0F;
      const float sum =
          table.read()[static_cast<std::size_t>(tokens[row]) * width + column] + place;
      expected.push_back(test::rounded(sum, dtype));
    }
  }
  CHECK(output.read() == expected);
}

TEST_CASE("Embedding: backward adds rows of repeated tokens", "[ops][embedding]") {
  const std::int64_t columns = GENERATE(1, 5, 130);
  const bool accumulate = GENERATE(false, true);
  auto tokens = test::random_tokens(embedded_sequences * length, 3, vocabulary);
  test::TypedValues gradient(test::random_values(embedded_sequences * length * columns, 4),
                             GENERATE(DType::f32, DType::bf16, DType::f16));
  const std::vector<double> terms = gradient.read_double();
  std::vector<float> table = test::random_values(vocabulary * columns, 5);
  std::vector<float> places = test::random_values(positions * columns, 6);
  std::vector<double> expected_table(table.size());
  std::vector<double> expected_places(places.size());
  if (accumulate) {
    expected_table = test::to_double(table);
    expected_places = test::to_double(places);
  }
  const auto width = static_cast<std::size_t>(columns);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::size_t row = i / width;
    expected_table[static_cast<std::size_t>(tokens[row]) * width + i % width] += terms[i];
    expected_places[row % length * width + i % width] += terms[i];
  }
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::embedding_backward({.tokens = HostView(tokens, {embedded_sequences, length}),
                           .output_gradient = gradient.view({embedded_sequences, length, columns}),
                           .token_gradient = HostView(table, {vocabulary, columns}),
                           .position_gradient = HostView(places, {positions, columns}),
                           .accumulate_token = accumulate,
                           .accumulate_position = accumulate},
                          stream);
  CHECK(test::difference(table, expected_table, test::tolerance::reduction) == "");
  CHECK(test::difference(places, expected_places, test::tolerance::reduction) == "");
}

TEST_CASE("Embedding: a token outside the table is refused", "[ops][embedding]") {
  std::vector<float> table(4);
  std::vector<float> places(4);
  std::vector<float> output(4);
  const std::int32_t token = GENERATE(-1, 2);
  std::vector<std::int32_t> tokens{0, token};
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  CHECK_THROWS_WITH(ops::embedding_forward({.tokens = HostView(tokens, {1, 2}),
                                            .token_table = HostView(table, {2, 2}),
                                            .position_table = HostView(places, {2, 2}),
                                            .output = HostView(output, {1, 2, 2})},
                                           stream),
                    Catch::Matchers::ContainsSubstring("of a vocabulary of 2"));
}

TEST_CASE("Embedding: positions begin anew with each document", "[ops][embedding]") {
  constexpr std::int64_t columns = 3;
  std::vector<std::int32_t> tokens(6, 0);
  std::vector<std::int32_t> first{0, 0, 2, 0, 1, 1};
  std::vector<float> table(vocabulary * columns, 10.0F);
  std::vector<float> places;
  for (std::int64_t i = 0; i < positions * columns; ++i) {
    places.push_back(static_cast<float>(i / columns));
  }
  std::vector<float> output(6 * columns);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const auto run = [&] {
    ops::embedding_forward({.tokens = HostView(tokens, {2, 3}),
                            .first_position = HostView(first, {2, 3}),
                            .token_table = HostView(table, {vocabulary, columns}),
                            .position_table = HostView(places, {positions, columns}),
                            .output = HostView(output, {2, 3, columns})},
                           stream);
  };
  run();
  const std::vector<float> expected{10, 11, 10, 10, 10, 11};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(output[i * columns] == expected[i]);
  std::vector<float> gradient(positions * columns);
  ops::embedding_backward({.tokens = HostView(tokens, {2, 3}),
                           .first_position = HostView(first, {2, 3}),
                           .output_gradient = HostView(output, {2, 3, columns}),
                           .token_gradient = {},
                           .position_gradient = HostView(gradient, {positions, columns})},
                          stream);
  CHECK(gradient[0] == 40);
  CHECK(gradient[columns] == 22);
  CHECK(gradient[2 * columns] == 0);
  first[4] = 2;  // behind its token
  CHECK_THROWS_AS(run(), Error);
}

}  // namespace
}  // namespace dstrain
