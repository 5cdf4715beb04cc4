#include "runtime/ops/attention.h"

#include <array>

#include "runtime/device/cpu_stream.h"
#include "runtime/ops/tile_product.h"
#include "tests/support/catch.h"
#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/reference_ops.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

/// Angles as of a head of `dims` with base 100, so that near positions differ much.
ops::Rotary rotary(std::int64_t dims, float magnitude = 1) {
  ops::Rotary turns{dims, magnitude, {}};
  for (std::int64_t i = 0; i < dims / 2; ++i) {
    turns.frequencies[static_cast<std::size_t>(i)] =
        std::pow(100.0F, -2.0F * static_cast<float>(i) / static_cast<float>(dims));
  }
  return turns;
}

/// Causal attention of each head to itself.
reference::Attention causal(std::int64_t sequences,
                            std::int64_t tokens,
                            std::int64_t heads,
                            std::int64_t head_size) {
  return {.sizes = {sequences, tokens, tokens, heads, heads, head_size},
          .rule = {.divisor = std::sqrt(static_cast<float>(head_size))}};
}

/// Tensors of one case, packed.
struct Attention {
  explicit Attention(const reference::Attention& what, DType dtype = DType::f32, float scale = 1)
      : of(what),
        queries(what.sizes.heads * what.sizes.head_size),
        keys(what.sizes.kv_heads * what.sizes.head_size),
        rows(what.sizes.sequences * what.sizes.tokens),
        key_rows(what.sizes.sequences * what.sizes.keys),
        query(test::random_values(rows * (queries + 3), 1, scale), dtype),
        key(test::random_values(key_rows * 2 * keys, 5, scale), dtype),
        output(test::random_values(rows * queries, 3), dtype),
        logsumexp(static_cast<std::size_t>(rows * what.sizes.heads)),
        gradient(test::random_values(rows * queries, 2), dtype),
        query_gradient(test::random_values(rows * (queries + 3), 4), dtype),
        key_gradient(test::random_values(key_rows * 2 * keys, 6), dtype),
        bias(test::random_values(what.rule.buckets.count * what.sizes.heads, 7, scale), dtype),
        bias_gradient(test::random_values(what.rule.buckets.count * what.sizes.heads, 8)) {
    of.bias = bias.read_double();
  }

  /// The queries stand in wider rows, keys and values beside each other.
  TensorView query_of(test::TypedValues& values) const {
    return values.view({rows, queries + 3}).columns(3, queries);
  }
  TensorView key_of(test::TypedValues& values) const {
    return values.view({key_rows, 2 * keys}).columns(0, keys);
  }
  TensorView value_of(test::TypedValues& values) const {
    return values.view({key_rows, 2 * keys}).columns(keys, keys);
  }
  TensorView counts() {
    if (of.key_counts.empty()) return {};
    return HostView(of.key_counts, {of.sizes.sequences});
  }
  TensorView first_keys() {
    if (of.first_keys.empty()) return {};
    return HostView(of.first_keys, {of.sizes.sequences, of.sizes.tokens});
  }
  TensorView bias_view() {
    if (!of.rule.buckets.active()) return {};
    return bias.view({of.rule.buckets.count, of.sizes.heads});
  }
  TensorView bias_gradient_view() {
    if (!of.rule.buckets.active()) return {};
    return HostView(bias_gradient, {of.rule.buckets.count, of.sizes.heads});
  }
  HostView space(Bytes bytes) {
    workspace.resize(static_cast<std::size_t>(bytes) + 64);
    void* start = workspace.data();
    std::size_t left = workspace.size();
    std::align(64, 1, start, left);
    return {start, DType::u8, {bytes}};
  }

  void forward(const ops::DropoutSite& site = {}) {
    const Bytes bytes = ops::attention_forward_workspace(of.sizes, of.rule, DeviceKind::cpu);
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    ops::attention_forward({.sizes = of.sizes,
                            .rule = of.rule,
                            .query = query_of(query),
                            .key = key_of(key),
                            .value = value_of(key),
                            .key_count = counts(),
                            .first_key = first_keys(),
                            .bias = bias_view(),
                            .output = output.view({rows, queries}),
                            .logsumexp = logsumexp_view(),
                            .workspace = space(bytes),
                            .dropout = site},
                           stream);
  }
  void backward(const ops::DropoutSite& site = {}) {
    const Bytes bytes = ops::attention_backward_workspace(of.sizes, of.rule, DeviceKind::cpu);
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    ops::attention_backward({.sizes = of.sizes,
                             .rule = of.rule,
                             .query = query_of(query),
                             .key = key_of(key),
                             .value = value_of(key),
                             .key_count = counts(),
                             .first_key = first_keys(),
                             .bias = bias_view(),
                             .output = output.view({rows, queries}),
                             .logsumexp = logsumexp_view(),
                             .output_gradient = gradient.view({rows, queries}),
                             .query_gradient = query_of(query_gradient),
                             .key_gradient = key_of(key_gradient),
                             .value_gradient = value_of(key_gradient),
                             .bias_gradient = bias_gradient_view(),
                             .accumulate_bias = accumulate_bias,
                             .workspace = space(bytes),
                             .dropout = site},
                            stream);
  }
  [[nodiscard]] HostView logsumexp_view() {
    return {logsumexp, {of.sizes.sequences, of.sizes.heads, of.sizes.tokens}};
  }
  /// What double makes of `query` and `key` as they are stored.
  [[nodiscard]] reference::Values expected(const reference::Values& q,
                                           const reference::Values& kv) const {
    return reference::attention(of, reference::columns_of(q, queries + 3, 3, queries),
                                reference::columns_of(kv, 2 * keys, 0, keys),
                                reference::columns_of(kv, 2 * keys, keys, keys));
  }
  [[nodiscard]] reference::Values expected() const {
    return expected(query.read_double(), key.read_double());
  }

  reference::Attention of;
  std::int64_t queries, keys, rows, key_rows;
  test::TypedValues query, key, output;
  std::vector<float> logsumexp;
  test::TypedValues gradient, query_gradient, key_gradient;
  test::TypedValues bias;
  std::vector<float> bias_gradient;
  bool accumulate_bias = false;
  std::vector<std::byte> workspace;
};

/// The multiplier of one probability, from the definition of groups and words.
reference::Dropper dropper(const ops::DropoutSite& site,
                           const std::array<std::int64_t, 2>& counter,
                           const ops::AttentionSizes& s) {
  return [=](std::size_t b, std::size_t h, std::size_t i, std::size_t j) {
    const std::size_t tiles = (static_cast<std::size_t>(s.keys) + 63) / 64;
    const std::size_t group = (h * static_cast<std::size_t>(s.tokens) + i) * tiles + j / 64;
    const std::size_t sample = static_cast<std::size_t>(counter[1]) + b;
    const auto words =
        philox({site.seed, RandomPurpose::dropout, static_cast<std::uint32_t>(counter[0]),
                (std::uint64_t{sample} << 40U) + group * 16 + j % 16});
    const auto rate = static_cast<double>(site.rate);
    return static_cast<double>(words[j % 64 / 16]) < rate * 0x1p32 ? 0.0 : 1 / (1 - rate);
  };
}

/// What the products of bf16 tensors round on the way depends on the machine.
test::Tolerance output_tolerance(DType dtype) {
  if (dtype == DType::bf16 && ops::rounds_products()) return {2e-2, 0x1p-7};
  return test::tolerance::stored(dtype, test::tolerance::reduction);
}

/// Per position, where its document begins; the first one begins at 0.
std::vector<std::int32_t> document_starts(std::int64_t sequences,
                                          std::int64_t tokens,
                                          const std::vector<std::int32_t>& starts) {
  std::vector<std::int32_t> of_position;
  for (std::int64_t i = 0; i < sequences * tokens; ++i) {
    std::int32_t own = 0;
    for (const std::int32_t start : starts) own = i % tokens >= start ? start : own;
    of_position.push_back(own);
  }
  return of_position;
}

/// Cases that differ from causal attention of each head to itself.
reference::Attention special(int number) {
  reference::Attention a = causal(2, 70, 4, 6);
  switch (number) {
    case 0:  // heads share keys
      a.sizes = {2, 70, 70, 6, 2, 6};
      break;
    case 1:  // a window shorter than a tile
      a.rule.window = 9;
      break;
    case 2:  // one that is longer, over three tiles
      a = causal(1, 150, 1, 8);
      a.rule.window = 70;
      break;
    case 3:  // of one tile exactly, and heads share keys
      a.sizes = {1, 140, 140, 2, 1, 4};
      a.rule.window = 64;
      break;
    case 4:
      a.rule.causal = false;
      break;
    case 5:  // fewer keys than queries
      a.sizes = {2, 70, 21, 2, 2, 5};
      a.rule.causal = false;
      break;
    case 6:  // more of them, some of which do not count
      a.sizes = {3, 11, 140, 2, 1, 5};
      a.rule.causal = false;
      a.key_counts = {140, 1, 66};
      break;
    case 7:
      a.key_counts = {3, 65};
      break;
    case 8:
      a.sizes = {1, 66, 66, 3, 1, 8};
      a.rule.rotary = rotary(8);
      break;
    case 9:  // part of a head, magnified; other scores
      a.rule.rotary = rotary(4, 1.25F);
      a.rule.divisor = 3.1F;
      break;
    case 10:
      a.sizes = {1, 90, 40, 2, 1, 20};
      a.rule = {.causal = false, .divisor = 5, .rotary = rotary(20)};
      a.key_counts = {33};
      break;
    case 11:  // a bias by distance, both ways, over tiles of which some are not full
      a.sizes = {2, 70, 130, 4, 2, 6};
      a.rule = {.causal = false, .divisor = 1, .buckets = {8, 20, true}};
      a.key_counts = {130, 71};
      break;
    case 12:  // one of keys in front alone
      a.rule.buckets = {6, 40, false};
      break;
    case 13:  // documents in a row, one of which begins with a tile
      a.first_keys = document_starts(2, 70, {1, 30, 64});
      break;
    default:
      a = causal(1, 150, 2, 8);
      a.rule.window = 70;
      a.rule.buckets = {9, 100, false};
      a.first_keys = document_starts(1, 150, {2, 120});
  }
  return a;
}
constexpr int specials = 15;

TEST_CASE("Attention: forward agrees with the naive implementation", "[ops][attention]") {
  const reference::Attention what = GENERATE(
      causal(1, 1, 1, 1), causal(2, 7, 3, 5), causal(2, 63, 2, 8), causal(1, 64, 1, 24),
      causal(1, 65, 2, 16), causal(2, 200, 2, 40), causal(1, 129, 1, 128), causal(1, 300, 1, 64),
      causal(1, 100, 2, 33), causal(1, 90, 1, 300), causal(1, 128, 3, 80), causal(35, 9, 2, 4));
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  CAPTURE(what.sizes.tokens, what.sizes.head_size);
  Attention attention(what, dtype);
  attention.forward();
  CHECK(test::difference(attention.output.read(), attention.expected(), output_tolerance(dtype)) ==
        "");
}

TEST_CASE("Attention: masks and shared heads agree with the naive implementation",
          "[ops][attention]") {
  const int number = GENERATE(range(0, specials));
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  CAPTURE(number);
  Attention attention(special(number), dtype);
  attention.forward();
  CHECK(test::difference(attention.output.read(), attention.expected(), output_tolerance(dtype)) ==
        "");
}

TEST_CASE("Attention: large scores neither overflow nor vanish", "[ops][attention]") {
  Attention attention(causal(1, 130, 1, 16), DType::f32, 6);
  attention.forward();
  CHECK(test::difference(attention.output.read(), attention.expected(), {5e-4, 1e-4}) == "");
}

/// Compares output and gradients with what double says.
void check_backward(Attention& attention, DType dtype, float rate) {
  std::array<std::int64_t, 2> counter{2, 3};
  const ops::DropoutSite site{.rate = rate, .seed = 9, .counter = HostView(counter, {2})};
  attention.forward(site);
  attention.backward(site);
  if (rate > 0) attention.of.drop = dropper(site, counter, attention.of.sizes);
  CHECK(test::difference(attention.output.read(), attention.expected(), output_tolerance(dtype)) ==
        "");
  // In bf16 backward reads the rounded output: an error of delta that no later sum averages out.
  const auto tolerance =
      is_half(dtype) ? test::Tolerance{2e-2, 0x1p-8} : test::tolerance::reduction;
  auto query = attention.query.read_double();
  auto key = attention.key.read_double();
  const auto loss = [&] {
    return test::weighted_sum(attention.expected(query, key), attention.gradient.read());
  };
  const auto stride_of = [](const reference::Values& values) {
    return values.size() > 1000 ? values.size() / 12 + 1 : 1;
  };
  // The columns in front of the queries belong to nobody.
  const std::vector<float> before = test::random_values(std::ssize(query), 4);
  std::vector<float> found = attention.query_gradient.read();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i % static_cast<std::size_t>(attention.queries + 3) < 3) found[i] = 0;
  }
  const std::size_t query_stride = stride_of(query);
  CHECK(test::difference(test::every(found, query_stride),
                         test::central_differences(query, loss, query_stride), tolerance) == "");
  const std::size_t key_stride = stride_of(key);
  CHECK(test::difference(test::every(attention.key_gradient.read(), key_stride),
                         test::central_differences(key, loss, key_stride), tolerance) == "");
  // A sum over all queries and keys of some distances.
  const auto bias_tolerance = is_half(dtype) ? test::Tolerance{6e-2, 0x1p-5} : tolerance;
  CHECK(test::difference(attention.bias_gradient,
                         test::central_differences(attention.of.bias, loss, 1),
                         bias_tolerance) == "");
}

TEST_CASE("Attention: backward agrees with central differences", "[ops][attention]") {
  const reference::Attention what =
      GENERATE(causal(1, 1, 1, 2), causal(2, 5, 2, 3), causal(1, 17, 2, 8), causal(1, 66, 1, 5),
               causal(1, 130, 1, 16), causal(1, 70, 1, 100));
  const float rate = GENERATE(0.0F, 0.25F);
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  CAPTURE(what.sizes.tokens, what.sizes.head_size, rate);
  Attention attention(what, dtype);
  check_backward(attention, dtype, rate);
}

TEST_CASE("Attention: gradients with masks and shared heads agree with central differences",
          "[ops][attention]") {
  const int number = GENERATE(range(0, specials));
  const float rate = GENERATE(0.0F, 0.25F);
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  CAPTURE(number, rate);
  Attention attention(special(number), dtype);
  check_backward(attention, dtype, rate);
}

TEST_CASE("Attention: the gradient of a bias is added to what there is", "[ops][attention]") {
  Attention attention(special(11));
  attention.forward();
  attention.backward();
  const std::vector<float> once = attention.bias_gradient;
  attention.accumulate_bias = true;
  attention.backward();
  for (std::size_t i = 0; i < once.size(); ++i) {
    CHECK(attention.bias_gradient[i] == once[i] + once[i]);
  }
}

TEST_CASE("Attention: large biases harm no query that is padding of a tile", "[ops][attention]") {
  Attention attention(special(11));
  std::vector<float> large = attention.bias.read();
  for (float& value : large) value *= 200;
  attention.bias.assign(large);
  attention.of.bias = attention.bias.read_double();
  attention.forward();
  attention.backward();
  CHECK(test::difference(attention.output.read(), attention.expected(), {1e-3, 1e-3}) == "");
  for (const float value : attention.key_gradient.read()) CHECK(std::isfinite(value));
}

TEST_CASE("Attention: a sequence does not see its neighbours in the batch", "[ops][attention]") {
  Attention both(causal(2, 70, 2, 8));
  both.forward();
  Attention second(causal(1, 70, 2, 8));
  const std::vector<float> query = both.query.read();
  const std::vector<float> key = both.key.read();
  second.query.assign({query.begin() + 70 * 19, query.end()});
  second.key.assign({key.begin() + 70 * 32, key.end()});
  second.forward();
  const std::vector<float> outputs = both.output.read();
  CHECK(second.output.read() == std::vector<float>(outputs.begin() + 70 * 16, outputs.end()));
}

TEST_CASE("Attention: later tokens do not change earlier outputs", "[ops][attention]") {
  Attention attention(causal(1, 100, 1, 8));
  attention.forward();
  const std::vector<float> before = attention.output.read();
  std::vector<float> key = attention.key.read();
  std::fill(key.begin() + 77 * 16, key.end(), 50.0F);
  attention.key.assign(key);
  attention.forward();
  const std::vector<float> after = attention.output.read();
  CHECK(std::equal(before.begin(), before.begin() + 77 * 8, after.begin()));
}

TEST_CASE("Attention: a rotary embedding holds at far positions", "[ops][attention]") {
  reference::Attention what = causal(1, 3000, 1, 4);
  what.rule.window = 8;
  what.rule.rotary = {4, 1, {41.0F, 0.7F}};  // angles of up to 1e5
  Attention attention(what);
  attention.forward();
  CHECK(test::difference(attention.output.read(), attention.expected(),
                         test::tolerance::reduction) == "");
}

TEST_CASE("Attention: rules that do not fit are refused", "[ops][attention]") {
  reference::Attention what = causal(1, 8, 3, 4);
  SECTION("causal over other keys") {
    what.sizes.keys = 9;
  }
  SECTION("heads that cannot share") {
    what.sizes.kv_heads = 2;
  }
  SECTION("a window without an order") {
    what.rule.causal = false;
    what.rule.window = 3;
  }
  SECTION("more than a head turns") {
    what.rule.rotary = rotary(6);
  }
  SECTION("a first key behind its query") {
    what.first_keys = {0, 0, 0, 4, 4, 4, 4, 4};
  }
  SECTION("first keys that go back") {
    what.first_keys = {0, 1, 1, 0, 1, 1, 1, 1};
  }
  SECTION("more keys than there are") {
    what.key_counts = {9};
  }
  Attention attention(what);
  CHECK_THROWS_AS(attention.forward(), Error);
}

}  // namespace
}  // namespace dstrain
