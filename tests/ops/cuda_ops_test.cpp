// Every op on a GPU against the CPU's: the bits where they are promised, else within what another
// order of sums and one rounding to the dtype make.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "runtime/base/label.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/numeric/exact_sum.h"
#include "runtime/ops/activation.h"
#include "runtime/ops/add.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/cached_attention.h"
#include "runtime/ops/classifier.h"
#include "runtime/ops/copy_finite.h"
#include "runtime/ops/copy_rows.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/dropout.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/embedding.h"
#include "runtime/ops/layer_norm.h"
#include "runtime/ops/mean_loss.h"
#include "runtime/ops/residual_norm.h"
#include "runtime/ops/round_stochastic.h"
#include "runtime/ops/scale.h"
#include "runtime/ops/square_sum.h"
#include "runtime/ops/update.h"
#include "runtime/ops/weight_gradient.h"
#include "tests/ops/all_ops.h"
#include "tests/support/catch.h"
#include "tests/support/every_rule.h"
#include "tests/support/test_gpu.h"
#include "tests/support/variable.h"

namespace dstrain {
namespace {

using test::DeviceTensors;
using test::TensorBytes;
using Body = std::function<void(DeviceTensors& t, StreamView stream)>;

std::vector<double> numbers_of(const TensorBytes& tensor) {
  const HostView view(const_cast<std::byte*>(tensor.bytes.data()), tensor.dtype,
                      {std::ssize(tensor.bytes) / size_of(tensor.dtype)});
  std::vector<double> numbers;
  const auto append = [&](auto element) {
    for (const auto value : view.as<decltype(element)>()) {
      if constexpr (std::is_same_v<decltype(element), BFloat16> ||
                    std::is_same_v<decltype(element), Float16>) {
        numbers.push_back(to_float(value));
      } else {
        numbers.push_back(static_cast<double>(value));
      }
    }
  };
  if (tensor.dtype == DType::bf16) append(BFloat16{});
  if (tensor.dtype == DType::f16) append(Float16{});
  if (tensor.dtype == DType::f32) append(float{});
  if (tensor.dtype == DType::f64) append(double{});
  return numbers;
}

/// `rounded`: close, but for what is rounded to the dtype on its way. In attention of f16 these are
/// queries and keys that turn, probabilities and gradients of scores, each by up to 2^-11 of its
/// size, of which the CPU rounds none; gradients of biases are sums in which much cancels.
/// `rounded_logits`: a loss rounds logits, and one of size 8 by 2^-6 or 2^-9, which changes its
/// probability by as much; in gradients of weights the largest probabilities stand out.
enum class Promise { close, rounded, rounded_logits, bits };

/// Of a whole tensor, and of its worst element by its root mean square. Halves round what differs
/// by an f32 rounding to neighbours, and the CPU rounds what it multiplies in attention to bf16.
struct Limits {
  double norm;
  double element;
};
Limits limits_of(DType dtype, Promise promise) {
  if (dtype == DType::f32) return {2e-5, 1e-3};
  if (promise == Promise::rounded_logits) {
    return dtype == DType::bf16 ? Limits{2e-2, 0.5} : Limits{2.5e-3, 0.06};
  }
  if (dtype == DType::bf16) return {1.2e-2, 0.25};
  return promise == Promise::rounded ? Limits{2e-3, 0.03} : Limits{5e-4, 0.015};
}
/// What is left of numbers of size 1 that cancel each other.
constexpr double cancelled = 2e-6;

/// Empty where they are close: ||actual - expected|| / ||expected||, and the worst element.
std::string difference(const TensorBytes& actual,
                       const TensorBytes& expected,
                       DType coarsest,
                       Promise promise) {
  const std::vector<double> e = numbers_of(expected);
  // NaNs differ in their signs, and what comes of one shows nothing.
  if (std::ranges::any_of(e, [](double number) { return std::isnan(number); })) return "NaNs";
  if (actual.bytes == expected.bytes) return "";
  const std::vector<double> a = numbers_of(actual);
  if (e.empty()) return "other integers";
  double error = 0;
  double norm = 0;
  double worst = 0;
  for (std::size_t i = 0; i < e.size(); ++i) {
    error += (a[i] - e[i]) * (a[i] - e[i]);
    norm += e[i] * e[i];
    worst = std::max(worst, std::abs(a[i] - e[i]));
  }
  const double root = std::sqrt(static_cast<double>(e.size()));
  const double size = std::sqrt(norm) / root;
  const Limits limits = limits_of(coarsest, promise);
  const bool close = std::sqrt(error) <= limits.norm * std::sqrt(norm) + cancelled * root &&
                     worst <= limits.element * size + 4 * cancelled;
  if (close) return "";
  return fmt::format("error {:.3g} of the norm, worst element {:.3g} of {:.3g}",
                     std::sqrt(error / norm), worst, size);
}

/// Runs `body` on both and compares all tensors. What stands in for a GPU draws its order.
std::string compare(Backend& gpu, DType dtype, Promise promise, const Body& body) {
  const auto run = [&](MemoryResource& memory, StreamView stream) {
    DeviceTensors tensors(dtype, memory, stream);
    body(tensors, stream);
    return tensors.all();
  };
  HostMemory host;
  CpuStream cpu(CpuStream::Mode::inline_on_caller);
  const std::vector<TensorBytes> expected = run(host, cpu);
  const char* const seed = std::getenv(test::stand_in_seed);
  const test::Variable order(test::stand_in_seed, seed != nullptr ? seed : "1");
  const auto stream = gpu.make_stream(Backend::StreamUse::computing);
  const std::vector<TensorBytes> actual = run(gpu.memory(), *stream);
  std::string all;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool same = actual[i] == expected[i];
    const std::string found = promise == Promise::bits
                                  ? (same ? "" : "other bits")
                                  : difference(actual[i], expected[i], dtype, promise);
    if (!found.empty())
      all += fmt::format("tensor {} of {}: {}\n", i, name_of(expected[i].dtype), found);
  }
  return all;
}

/// A range of so many numbers; `first` of one that begins at a multiple of 16 bytes.
TensorView range(DeviceTensors& t, DType dtype, std::int64_t first, std::int64_t numel) {
  const Shape shape{first + numel};
  return (dtype == DType::f32 ? t.f32(shape) : t.random(shape)).part(first, {numel});
}

DType any_dtype() {
  return GENERATE(DType::f32, DType::bf16, DType::f16);
}

}  // namespace

TEST_CASE("CUDA ops: flat ranges have the CPU's bits", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const std::int64_t numel = GENERATE(1, 63, 64, 65, 1000, 70'001);
  const std::int64_t first = GENERATE(0, 1);
  const DType dtype = any_dtype();
  CAPTURE(numel, first, name_of(dtype));
  CHECK(compare(*gpu, dtype, Promise::bits, [&](DeviceTensors& t, StreamView stream) {
          const auto any = [&] {
            return range(t, dtype, first, numel);
          };
          const TensorView values = range(t, DType::f32, first, numel);
          ops::add(any(), values, stream);
          ops::add(values, any(), stream);
          ops::convert(values, any(), stream);
          ops::convert(any(), values, stream);
          ops::scale(any(), 0.3F, any(), stream);
          ops::add_squares({{any()}, t.zeros(DType::i64, {ExactSum::numel})}, stream);
          ops::copy_finite({any(), any(), t.zeros(DType::i32, {1})}, stream);
        }) == "");
}

TEST_CASE("CUDA ops: the exact sum of squares of any floats has the CPU's bits", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  CpuStream cpu(CpuStream::Mode::inline_on_caller);
  std::vector<float> values = test::random_values(10'000, 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(values[i], static_cast<int>(i * 37 % 240) - 120);
  }
  const bool finite = GENERATE(true, false);
  if (!finite) values[4321] = std::numeric_limits<float>::infinity();
  ExactSum expected;
  ops::add_squares({{HostView(values, {10'000})}, ops::view_of(expected)}, cpu);
  ops::add_squares({{HostView(values, {10'000})}, ops::view_of(expected)}, cpu);
  const Buffer buffer(10'000 * size_of(DType::f32), gpu->memory(), *stream);
  const Buffer sum(ExactSum::numel * 8, gpu->memory(), *stream);
  const TensorView there = buffer.block().cut(0, DType::f32, {10'000});
  const TensorView sum_there = sum.block().cut(0, DType::i64, {ExactSum::numel});
  ops::fill_zero(sum_there, *stream);
  ops::convert(HostView(values, {10'000}), there, *stream);
  ops::add_squares({{there}, sum_there}, *stream);
  ops::add_squares({{there}, sum_there}, *stream);
  ExactSum actual;
  ops::convert(sum_there, ops::view_of(actual), *stream);
  stream->synchronize();
  CHECK(std::memcmp(&actual, &expected, sizeof(ExactSum)) == 0);
}

TEST_CASE("CUDA ops: squares of many tensors have the CPU's bits", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  CHECK(compare(*gpu, DType::f32, Promise::bits, [&](DeviceTensors& t, StreamView stream) {
          std::vector<TensorView> values;
          for (std::int64_t i = 0; i < 150; ++i) {  // more than a launch takes
            const DType dtype = i % 40 < 38 ? DType::f32 : DType::bf16;
            values.push_back(range(t, dtype, i % 5, i * 97 % 700));
          }
          ops::add_squares({values, t.zeros(DType::i64, {ExactSum::numel})}, stream);
        }) == "");
}

TEST_CASE("CUDA ops: optimizers have the CPU's bits", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const std::int64_t numel = GENERATE(1, 64, 100, 5000);
  const double taken = GENERATE(1.0, 0.0);
  const auto half = GENERATE(DType::bf16, DType::f16);
  const std::int64_t first = GENERATE(0, 1);
  CAPTURE(numel, taken, first, name_of(half));
  CHECK(compare(*gpu, half, Promise::bits, [&](DeviceTensors& t, StreamView stream) {
          const TensorView parameters = range(t, DType::f32, first, numel);
          const TensorView gradients = range(t, DType::f32, first, numel);
          const TensorView decision = t.decision({.gradient_scale = 0.37, .taken = taken});
          const TensorView sums = t.zeros(DType::i64, {ops::norm_sums, ops::norm_sum_numel});
          const rules::Step step{.number = 3, .learning_rate = 1e-3};
          for (const rules::Settings& settings : test::every_rule()) {
            const ops::UpdateArgs args{
                .rule = settings.index(),
                .parameters = parameters,
                .gradients = gradients,
                .states = {range(t, DType::f32, first, numel), t.zeros(DType::f32, {numel})},
                .scalars = t.scalars(rules::scalars(settings, step)),
                .sums = sums,
                .decision = decision,
                .working = range(t, half, first, numel)};
            if (rules::is_layerwise(settings)) {
              for (int piece = 0; piece < 2; ++piece) ops::measure_update(args, stream);
            }
            ops::update(args, stream);
          }
        }) == "");
}

TEST_CASE("CUDA ops: what is drawn has the CPU's bits", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  const std::int64_t columns = GENERATE(1, 16, 33, 100);
  CAPTURE(name_of(dtype), columns);
  CHECK(compare(*gpu, dtype, Promise::bits, [&](DeviceTensors& t, StreamView stream) {
          const Shape shape{3, 7, columns};
          const ops::DropoutSite site{.rate = 0.3F, .seed = 77, .counter = t.counter(5, 6)};
          ops::dropout(
              {.input = t.random(shape), .residual = {}, .output = t.random(shape), .site = site},
              stream);
          ops::dropout({.input = t.random(shape),
                        .residual = t.random(shape),
                        .output = t.random(shape),
                        .site = site},
                       stream);
          ops::dropout({.input = t.random(shape),
                        .residual = t.random(shape),
                        .output = t.random(shape),
                        .site = {}},
                       stream);
          if (!is_half(dtype)) return;
          for (const std::int64_t first : {0, 1, 127, 300}) {
            ops::round_stochastic({.source = t.f32({columns * 9}),
                                   .target = t.vector(columns * 9),
                                   .key = t.zeros(DType::i64, {1}),
                                   .stream = 3,
                                   .first = first},
                                  stream);
          }
        }) == "");
}

TEST_CASE("CUDA ops: embeddings have the CPU's bits", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  const std::int64_t columns = GENERATE(1, 60, 576);
  const bool accumulate = GENERATE(false, true);
  CAPTURE(name_of(dtype), columns, accumulate);
  CHECK(
      compare(*gpu, dtype, Promise::bits, [&](DeviceTensors& t, StreamView stream) {
        const TensorView tokens = t.numbers({3, 211}, 20);
        const TensorView first = t.ramp({3, 211}, [](std::int64_t i) { return i % 211 / 41 * 41; });
        ops::embedding_forward({.tokens = tokens,
                                .token_table = t.matrix(20, columns),
                                .position_table = t.matrix(230, columns),
                                .output = t.random({3, 211, columns})},
                               stream);
        ops::embedding_forward({.tokens = tokens,
                                .past = t.ramp({3}, [](std::int64_t i) { return 9 * i; }),
                                .token_table = t.matrix(20, columns),
                                .position_table = t.matrix(230, columns),
                                .output = t.random({3, 211, columns})},
                               stream);
        ops::embedding_forward({.tokens = tokens,
                                .token_table = t.matrix(20, columns),
                                .output = t.random({3, 211, columns})},
                               stream);
        ops::embedding_backward({.tokens = tokens,
                                 .output_gradient = t.random({3, 211, columns}),
                                 .token_gradient = t.f32({20, columns}),
                                 .position_gradient = t.f32({230, columns}),
                                 .accumulate_token = accumulate,
                                 .accumulate_position = accumulate},
                                stream);
        ops::embedding_forward({.tokens = tokens,
                                .first_position = first,
                                .token_table = t.matrix(20, columns),
                                .position_table = t.matrix(230, columns),
                                .output = t.random({3, 211, columns})},
                               stream);
        ops::embedding_backward({.tokens = tokens,
                                 .first_position = first,
                                 .output_gradient = t.random({3, 211, columns}),
                                 .token_gradient = t.f32({20, columns}),
                                 .position_gradient = t.f32({230, columns}),
                                 .accumulate_token = accumulate,
                                 .accumulate_position = accumulate},
                                stream);
      }) == "");
}

TEST_CASE("CUDA ops: gradients of many embeddings have the CPU's bits", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  const auto vocabulary = static_cast<std::uint64_t>(GENERATE(1, 3000));
  CAPTURE(name_of(dtype), vocabulary);
  CHECK(compare(*gpu, dtype, Promise::bits, [&](DeviceTensors& t, StreamView stream) {
          const Shape shape{5, 1900};
          ops::embedding_backward(
              {.tokens = t.numbers(shape, vocabulary),
               .output_gradient = t.random({5, 1900, 8}),
               .token_gradient = t.f32({static_cast<std::int64_t>(vocabulary), 8}),
               .position_gradient = {}},
              stream);
        }) == "");
}

TEST_CASE("CUDA ops: the decision of a step has the CPU's bits", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const double norm_max = GENERATE(0.0, 1.0, 1e6);
  const std::int64_t numel = GENERATE(100, 1000);
  CHECK(compare(*gpu, DType::f32, Promise::bits, [&](DeviceTensors& t, StreamView stream) {
          const TensorView totals = t.zeros(DType::i64, {3, ops::step_total_numel});
          for (std::int64_t rank = 0; rank < 3; ++rank) {
            const TensorView own = totals.rows(rank, 1).reshaped({ops::step_total_numel});
            ops::add_squares({{t.f32({numel})}, own.part(0, {ExactSum::numel})}, stream);
            ops::convert(t.number(3.25 + static_cast<double>(rank)).reused(DType::i64, {1}),
                         own.part(ExactSum::numel, {1}), stream);
          }
          ops::decide_step({.totals = totals,
                            .labels = t.number(7),
                            .loss_scale = t.number(8),
                            .decision = t.zeros(DType::f64, {ops::StepDecision::numel}),
                            .norm_max = norm_max},
                           stream);
        }) == "");
}

TEST_CASE("CUDA ops: every op is close to the CPU's", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  HostMemory host;
  CpuStream cpu(CpuStream::Mode::inline_on_caller);
  const auto expected = test::run_all_ops({dtype, host, cpu});
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  const auto actual = test::run_all_ops({dtype, gpu->memory(), *stream});
  REQUIRE(actual.size() == expected.size());
  std::string all;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    // The sums of squares are of what differs in its last bits.
    const std::string found = difference(actual[i], expected[i], dtype, Promise::rounded);
    if (!found.empty())
      all += fmt::format("tensor {} of {}: {}\n", i, name_of(expected[i].dtype), found);
  }
  CAPTURE(name_of(dtype));
  CHECK(all == "");
}

namespace {

struct AttentionCase {
  const char* name;
  ops::AttentionSizes sizes;
  ops::AttentionRule rule{};
  bool key_counts = false;
  bool first_keys = false;
  float dropout = 0;
};

std::vector<AttentionCase> attention_cases() {
  ops::Rotary rotary{.dims = 64, .magnitude = 1.25F};
  for (std::size_t i = 0; i < 32; ++i) {
    rotary.frequencies.at(i) = std::pow(10'000.0F, -static_cast<float>(i) / 32.0F);
  }
  ops::Rotary part = rotary;
  part.dims = 10;
  ops::Rotary longer = rotary;
  longer.short_positions = 100;
  for (std::size_t i = 0; i < 32; ++i)
    longer.long_frequencies.at(i) = 0.3F / static_cast<float>(1 + i);
  const ops::AttentionRule causal{.divisor = 8};
  const ops::AttentionRule both{.causal = false, .divisor = 8};
  return {
      {"causal", {2, 130, 130, 3, 3, 64}, causal},
      {"one token", {2, 1, 1, 3, 3, 64}, causal},
      {"both ways", {2, 70, 129, 2, 2, 64}, both},
      {"keys that count", {3, 70, 100, 2, 2, 64}, both, true},
      {"window", {1, 200, 200, 2, 2, 64}, {.window = 37, .divisor = 8}},
      {"documents", {2, 150, 150, 2, 2, 64}, causal, false, true},
      {"window, documents and counts",
       {2, 150, 150, 2, 2, 64},
       {.window = 90, .divisor = 8},
       true,
       true},
      {"groups", {2, 100, 100, 6, 2, 64}, causal},
      {"dropout", {2, 130, 130, 4, 2, 64}, causal, false, false, 0.2F},
      {"rotary", {1, 140, 140, 4, 2, 80}, {.divisor = 9, .rotary = rotary}},
      {"rotary of many tokens", {1, 140, 140, 4, 2, 80}, {.divisor = 9, .rotary = longer}},
      {"rotary of few tokens", {1, 90, 90, 4, 2, 80}, {.divisor = 9, .rotary = longer}},
      {"rotary of a part", {1, 70, 70, 2, 1, 20}, {.divisor = 4, .rotary = part}},
      {"biases", {2, 150, 150, 3, 3, 40}, {.divisor = 1, .buckets = {32, 128, false}}},
      {"biases both ways",
       {2, 90, 150, 4, 4, 64},
       {.causal = false, .divisor = 1, .buckets = {32, 128, true}}},
      {"heads of 128", {1, 130, 130, 2, 1, 128}, causal},
      {"heads of 100", {1, 80, 80, 2, 2, 100}, causal},
      {"a key short of two tiles", {1, 70, 127, 1, 1, 16}, both},
      {"a tile but for its first key", {1, 200, 200, 1, 1, 16}, {.window = 127, .divisor = 4}},
      {"one feature", {1, 66, 66, 3, 1, 1}, both},
      {"one key", {2, 65, 1, 2, 2, 16}, both},
      {"dropout and groups", {2, 65, 65, 4, 2, 24}, causal, false, false, 0.5F},
      {"heads of 256",
       {1, 100, 100, 2, 1, 256},
       {.divisor = 16, .rotary = rotary},
       false,
       false,
       0.1F},
  };
}

void run_attention(const AttentionCase& c, DeviceTensors& t, StreamView stream) {
  const auto& s = c.sizes;
  const std::int64_t wide = s.heads * s.head_size;
  const std::int64_t narrow = s.kv_heads * s.head_size;
  const DeviceKind kind = stream.device().kind;
  const TensorView queries = t.matrix(s.sequences * s.tokens, wide + 8);
  const TensorView keys = t.matrix(s.sequences * s.keys, 2 * narrow);
  ops::AttentionArgs forward{.sizes = s,
                             .rule = c.rule,
                             .query = queries.columns(8, wide),
                             .key = keys.columns(0, narrow),
                             .value = keys.columns(narrow, narrow),
                             .output = t.matrix(s.sequences * s.tokens, wide),
                             .logsumexp = t.f32({s.sequences, s.heads, s.tokens})};
  if (c.key_counts)
    forward.key_count = t.ramp(
        {s.sequences}, [&](std::int64_t i) { return std::max<std::int64_t>(s.keys - 17 * i, 1); });
  if (c.first_keys) {
    forward.first_key =
        t.ramp({s.sequences, s.tokens}, [&](std::int64_t i) { return i % s.tokens / 41 * 41; });
  }
  if (c.rule.buckets.active()) forward.bias = t.matrix(c.rule.buckets.count, s.heads);
  if (c.dropout > 0) forward.dropout = {.rate = c.dropout, .seed = 9, .counter = t.counter(3, 4)};
  forward.workspace = t.workspace(ops::attention_forward_workspace(s, c.rule, kind));
  ops::attention_forward(forward, stream);
  const TensorView query_gradient = t.matrix(s.sequences * s.tokens, wide);
  const TensorView key_gradient = t.matrix(s.sequences * s.keys, 2 * narrow);
  ops::AttentionBackwardArgs backward{
      .sizes = s,
      .rule = c.rule,
      .query = forward.query,
      .key = forward.key,
      .value = forward.value,
      .key_count = forward.key_count,
      .first_key = forward.first_key,
      .bias = forward.bias,
      .output = forward.output,
      .logsumexp = forward.logsumexp,
      .output_gradient = t.matrix(s.sequences * s.tokens, wide),
      .query_gradient = query_gradient,
      .key_gradient = key_gradient.columns(0, narrow),
      .value_gradient = key_gradient.columns(narrow, narrow),
      .workspace = t.workspace(ops::attention_backward_workspace(s, c.rule, kind)),
      .dropout = forward.dropout};
  if (c.rule.buckets.active()) {
    backward.bias_gradient = t.f32({c.rule.buckets.count, s.heads});
    backward.accumulate_bias = true;
  }
  ops::attention_backward(backward, stream);
}

}  // namespace

TEST_CASE("CUDA ops: attention of all kinds is close to the CPU's", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  for (const AttentionCase& c : attention_cases()) {
    CAPTURE(name_of(dtype), c.name);
    CHECK(compare(*gpu, dtype, Promise::rounded,
                  [&](DeviceTensors& t, StreamView stream) { run_attention(c, t, stream); }) == "");
  }
}

namespace {

/// Any sizes and rules together.
AttentionCase random_attention(std::uint64_t seed) {
  std::uint64_t drawn = 0;
  const auto below = [&](std::int64_t bound) {
    const auto most = static_cast<std::uint64_t>(bound);
    return static_cast<std::int64_t>(uniform_below({.seed = seed, .index = drawn++}, most));
  };
  const bool causal = below(3) > 0;
  const std::int64_t tokens = 2 + below(135);
  const std::int64_t keys = causal ? tokens : 2 + below(135);
  const std::int64_t kv_heads = 1 + below(2);
  constexpr std::array<std::int64_t, 9> head_sizes{3, 8, 24, 33, 64, 65, 80, 128, 136};
  const std::int64_t head_size = head_sizes.at(static_cast<std::size_t>(below(9)));
  AttentionCase c{"random",
                  {1 + below(2), tokens, keys, kv_heads * (1 + below(2)), kv_heads, head_size}};
  c.rule.causal = causal;
  c.rule.divisor = std::sqrt(static_cast<float>(head_size));
  if (causal && below(2) > 0) c.rule.window = 1 + below(tokens + 5);
  if (below(2) > 0) {
    c.rule.rotary.dims = 2 * (1 + below(head_size / 2));
    for (float& frequency : c.rule.rotary.frequencies) {
      frequency = 0.01F * static_cast<float>(below(100));
    }
  }
  if (below(3) > 0) c.rule.buckets = {2 * (4 + below(13)), 128, !causal};
  c.first_keys = causal && below(2) > 0;
  // A query that sees nothing stands for nothing.
  c.key_counts = !c.first_keys && c.rule.window == 0 && below(2) > 0;
  c.dropout = below(2) > 0 ? 0.25F : 0;
  return c;
}

/// Rows of numbers among numbers that are none: before them, behind them and at their sides.
struct Surrounded {
  Surrounded(DeviceTensors& t, StreamView stream, std::int64_t height, std::int64_t width)
      : rows(height), columns(width), to(stream) {
    const Shape shape{rows + 2, columns + before + behind};
    whole = t.workspace(shape.numel() * size_of(t.dtype())).cut(0, t.dtype(), shape);
    test::TypedValues none(std::vector<float>(static_cast<std::size_t>(shape.numel()),
                                              std::numeric_limits<float>::quiet_NaN()),
                           t.dtype());
    ops::convert(none.view(shape), whole, to);
    to.synchronize();
  }
  [[nodiscard]] TensorView inner(std::int64_t first, std::int64_t count) const {
    return whole.rows(1, rows).columns(before + first, count);
  }
  [[nodiscard]] TensorView inner() const { return inner(0, columns); }
  [[nodiscard]] bool intact() const {
    test::TypedValues values(std::vector<float>(static_cast<std::size_t>(whole.numel())),
                             whole.dtype());
    ops::convert(whole, values.view(whole.shape()), to);
    to.synchronize();
    const std::vector<float> read = values.read();
    const std::int64_t width = before + columns + behind;
    std::int64_t numbers = 0;
    for (const float value : read) numbers += std::isnan(value) ? 0 : 1;
    return numbers == rows * columns && std::isnan(read[static_cast<std::size_t>(width)]);
  }
  static constexpr std::int64_t before = 8;
  static constexpr std::int64_t behind = 16;
  std::int64_t rows;
  std::int64_t columns;
  StreamView to;
  TensorView whole;
};

}  // namespace

TEST_CASE("CUDA ops: attention of any rules together is close to the CPU's", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const AttentionCase c = random_attention(seed);
    CAPTURE(name_of(dtype), seed);
    CHECK(compare(*gpu, dtype, Promise::rounded,
                  [&](DeviceTensors& t, StreamView stream) { run_attention(c, t, stream); }) == "");
  }
}

namespace {

/// Tokens more of sequences of different lengths, with any rules.
void run_cached(std::uint64_t seed, DeviceTensors& t, StreamView stream) {
  std::uint64_t drawn = 0;
  const auto below = [&](std::int64_t bound) {
    const auto most = static_cast<std::uint64_t>(bound);
    return static_cast<std::int64_t>(uniform_below({.seed = seed, .index = drawn++}, most));
  };
  constexpr std::array<std::int64_t, 6> head_sizes{3, 24, 64, 65, 128, 256};
  const std::int64_t head_size = head_sizes.at(static_cast<std::size_t>(below(6)));
  const std::int64_t kv_heads = 1 + below(2);
  const std::int64_t narrow = kv_heads * head_size;
  const std::int64_t wide = narrow * (1 + below(3));
  const std::int64_t sequences = 1 + below(3);
  const std::int64_t tokens = 1 + below(12);
  ops::AttentionRule rule{.causal = below(3) > 0, .divisor = 3};
  std::int64_t rows = 160;
  if (rule.causal && below(2) > 0) {
    rule.window = 1 + below(50);
    rows = 64;
  }
  if (below(2) > 0) {
    rule.rotary = {2 * (1 + below(head_size / 2)), 1.5F, {0.9F, 0.5F, 0.1F}, 100, {0.3F, 0.2F}};
  }
  if (rule.causal && below(2) > 0) rule.buckets = {8, 40, false};
  const ops::AttentionSizes sizes{sequences, tokens, 160, wide / head_size, kv_heads, head_size};
  const auto each = [&](const auto& value) {
    return t.ramp({sequences}, value);
  };
  const auto past = [](std::int64_t i) {
    return 60 * i + 7;
  };
  const ops::KeyValueCache cache{t.random({4, rows, narrow}), t.random({4, rows, narrow})};
  const ops::CachePlaces places{each([](std::int64_t i) { return 3 - i; }), each(past),
                                each([&](std::int64_t i) { return past(i) + tokens; })};
  const TensorView packed = t.matrix(sequences * tokens, wide + 2 * narrow);
  ops::append_cache({.head_size = head_size,
                     .rotary = rule.rotary,
                     .key = packed.columns(wide, narrow),
                     .value = packed.columns(wide + narrow, narrow),
                     .cache = cache,
                     .places = places},
                    stream);
  const Bytes bytes = ops::cached_attention_workspace(sizes, rule, stream.device().kind);
  ops::cached_attention(
      {.sizes = sizes,
       .rule = rule,
       .query = packed.columns(0, wide),
       .cache = cache,
       .places = places,
       .key_count =
           rule.causal ? TensorView() : each([&](std::int64_t i) { return rows - 50 * i; }),
       .bias = rule.buckets.active() ? t.matrix(rule.buckets.count, sizes.heads) : TensorView(),
       .output = t.matrix(sequences * tokens, wide),
       .workspace = t.workspace(bytes)},
      stream);
}

}  // namespace

TEST_CASE("CUDA ops: attention to a cache is close to the CPU's", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    CAPTURE(name_of(dtype), seed);
    CHECK(compare(*gpu, dtype, Promise::rounded,
                  [&](DeviceTensors& t, StreamView stream) { run_cached(seed, t, stream); }) == "");
  }
}

TEST_CASE("CUDA ops: attention keeps to its rows and columns", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  const std::int64_t head_size = GENERATE(24, 21);  // rows that are aligned, and that are not
  const std::int64_t tokens = GENERATE(1, 70);
  CAPTURE(name_of(dtype), head_size, tokens);
  const ops::AttentionSizes sizes{2, tokens, tokens, 2, 1, head_size};
  const std::int64_t rows = 2 * tokens;
  int intact = 0;
  CHECK(compare(*gpu, dtype, Promise::rounded, [&](DeviceTensors& t, StreamView stream) {
          const Surrounded inputs(t, stream, rows, 4 * head_size);
          const Surrounded outputs(t, stream, rows, 2 * head_size);
          const Surrounded gradients(t, stream, rows, 2 * head_size);
          const Surrounded made(t, stream, rows, 4 * head_size);
          for (const Surrounded* given : {&inputs, &gradients}) {
            ops::copy_rows(t.matrix(rows, given->columns), given->inner(), stream);
          }
          const auto cut = [&](const Surrounded& from, std::int64_t first, std::int64_t heads) {
            return from.inner(first * head_size, heads * head_size);
          };
          const ops::AttentionRule rule{.divisor = 4};
          const DeviceKind kind = stream.device().kind;
          const TensorView logsumexp = t.f32({2, 2, tokens});
          ops::attention_forward(
              {.sizes = sizes,
               .rule = rule,
               .query = cut(inputs, 0, 2),
               .key = cut(inputs, 2, 1),
               .value = cut(inputs, 3, 1),
               .output = outputs.inner(),
               .logsumexp = logsumexp,
               .workspace = t.workspace(ops::attention_forward_workspace(sizes, rule, kind))},
              stream);
          ops::attention_backward(
              {.sizes = sizes,
               .rule = rule,
               .query = cut(inputs, 0, 2),
               .key = cut(inputs, 2, 1),
               .value = cut(inputs, 3, 1),
               .output = outputs.inner(),
               .logsumexp = logsumexp,
               .output_gradient = gradients.inner(),
               .query_gradient = cut(made, 0, 2),
               .key_gradient = cut(made, 2, 1),
               .value_gradient = cut(made, 3, 1),
               .workspace = t.workspace(ops::attention_backward_workspace(sizes, rule, kind))},
              stream);
          for (const Surrounded* result : {&outputs, &made}) {
            ops::copy_rows(result->inner(), t.matrix(rows, result->columns), stream);
            intact += result->intact() ? 1 : 0;
          }
        }) == "");
  CHECK(intact == 4);
}

TEST_CASE("CUDA ops: products of all layouts are close to the CPU's", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  const auto [m, n, k] = GENERATE(table<std::int64_t, std::int64_t, std::int64_t>(
      {{1, 1, 1}, {1, 48, 40}, {33, 17, 5}, {65, 130, 70}, {128, 256, 64}}));
  const bool a_transposed = GENERATE(false, true);
  const bool b_transposed = GENERATE(false, true);
  const std::int64_t first = GENERATE(0, 1);
  CAPTURE(name_of(dtype), m, n, k, a_transposed, b_transposed, first);
  CHECK(compare(*gpu, dtype, Promise::close, [&](DeviceTensors& t, StreamView stream) {
          ops::MatmulArgs product{.a = a_transposed ? t.matrix(k, m) : t.matrix(m, k),
                                  .b = b_transposed ? t.matrix(n, k) : t.matrix(k, n),
                                  .out = t.matrix(m, n),
                                  .a_transposed = a_transposed,
                                  .b_transposed = b_transposed};
          product.workspace = t.workspace(product);
          ops::matmul(product, stream);
          product.bias = range(t, dtype, first, n);
          product.out = t.matrix(m, n);
          product.workspace = t.workspace(product);
          ops::matmul(product, stream);
          product.out = t.f32({m, n});
          product.accumulate = true;
          product.workspace = t.workspace(product);
          ops::matmul(product, stream);
        }) == "");
}

TEST_CASE("CUDA ops: norms are close to the CPU's and recomputed bit for bit", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  const std::int64_t columns = GENERATE(1, 31, 128, 1000);
  const std::int64_t rows = GENERATE(1, 70, 300);
  const bool centres = GENERATE(true, false);
  const bool accumulate = GENERATE(true, false);
  CAPTURE(name_of(dtype), columns, rows, centres, accumulate);
  std::vector<TensorView> twice;
  CHECK(compare(*gpu, dtype, Promise::close, [&](DeviceTensors& t, StreamView stream) {
          ops::LayerNormArgs forward{.input = t.matrix(rows, columns),
                                     .weight = t.vector(columns),
                                     .bias = centres ? t.vector(columns) : TensorView(),
                                     .mean = centres ? t.f32({rows}) : TensorView(),
                                     .rstd = t.f32({rows}),
                                     .output = t.matrix(rows, columns),
                                     .eps = 1e-5F};
          ops::layer_norm_forward(forward, stream);
          const TensorView first = forward.output;
          forward.output = t.matrix(rows, columns);
          ops::layer_norm_recompute(forward, stream);
          ops::layer_norm_backward({.input = forward.input,
                                    .weight = forward.weight,
                                    .mean = forward.mean,
                                    .rstd = forward.rstd,
                                    .output_gradient = t.matrix(rows, columns),
                                    .residual = accumulate ? TensorView() : t.matrix(rows, columns),
                                    .input_gradient = t.matrix(rows, columns),
                                    .weight_gradient = t.f32({columns}),
                                    .bias_gradient = centres ? t.f32({columns}) : TensorView(),
                                    .accumulate_input = accumulate,
                                    .accumulate_weight = accumulate,
                                    .accumulate_bias = accumulate},
                                   stream);
          std::vector<std::byte> both[2];
          int i = 0;
          for (const TensorView& view : {first, forward.output}) {
            both[i].resize(static_cast<std::size_t>(view.bytes()));
            ops::convert(view, HostView(both[i++].data(), view.dtype(), view.shape()), stream);
          }
          stream.synchronize();
          CHECK((both[0] == both[1]));
        }) == "");
}

TEST_CASE("CUDA ops: the bits of norms do not depend on where memory begins", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  const DType dtype = any_dtype();
  const std::int64_t rows = GENERATE(3, 300);
  const std::int64_t columns = GENERATE(8, 1160, 4200);
  CAPTURE(name_of(dtype), rows, columns);
  std::vector<TensorBytes> results;
  for (const std::int64_t first : {0, 1}) {
    DeviceTensors t(dtype, gpu->memory(), *stream);
    DeviceTensors values(dtype, gpu->memory(), *stream);
    const auto placed = [&](const TensorView& view) {
      const TensorView copy = t.zeros(dtype, {first + view.numel()}).part(first, view.shape());
      ops::convert(view, copy, *stream);
      return copy;
    };
    const TensorView input = placed(values.matrix(rows, columns));
    const TensorView weight = placed(values.vector(columns));
    const TensorView mean = values.f32({rows});
    const TensorView rstd = values.f32({rows});
    const TensorView output = values.matrix(rows, columns);
    const TensorView input_gradient = values.matrix(rows, columns);
    ops::layer_norm_forward({.input = input,
                             .weight = weight,
                             .mean = mean,
                             .rstd = rstd,
                             .output = output,
                             .eps = 1e-5F},
                            *stream);
    ops::layer_norm_backward({.input = input,
                              .weight = weight,
                              .mean = mean,
                              .rstd = rstd,
                              .output_gradient = placed(values.matrix(rows, columns)),
                              .residual = placed(values.matrix(rows, columns)),
                              .input_gradient = input_gradient,
                              .weight_gradient = values.f32({columns}),
                              .bias_gradient = values.f32({columns})},
                             *stream);
    for (const TensorBytes& made : values.all()) results.push_back(made);
  }
  const std::size_t half = results.size() / 2;
  for (std::size_t i = 0; i < half; ++i) CHECK(results[i] == results[half + i]);
}

TEST_CASE("CUDA ops: a branch that joins before a norm has the bits of both ops", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  const DType dtype = any_dtype();
  const std::int64_t columns = GENERATE(24, 1160, 3000, 4200);
  const bool centres = GENERATE(true, false);
  CAPTURE(name_of(dtype), columns, centres);
  constexpr std::int64_t rows = 5;
  std::vector<TensorBytes> results[2];
  for (const bool fused : {false, true}) {
    DeviceTensors t(dtype, gpu->memory(), *stream);
    const TensorView sum = t.matrix(rows, columns);
    const auto row_by_row = [&](const TensorView& view) {
      return view.reshaped({1, rows, columns});
    };
    const ops::DropoutArgs join{.input = row_by_row(t.matrix(rows, columns)),
                                .residual = row_by_row(sum),
                                .output = row_by_row(sum),
                                .site = {}};
    const ops::LayerNormArgs norm{.input = row_by_row(sum),
                                  .weight = t.vector(columns),
                                  .bias = centres ? t.vector(columns) : TensorView(),
                                  .mean = centres ? t.f32({rows}) : TensorView(),
                                  .rstd = t.f32({rows}),
                                  .output = row_by_row(t.matrix(rows, columns)),
                                  .eps = 1e-5F};
    if (fused) {
      ops::residual_norm_forward({.join = join, .norm = norm}, *stream);
    } else {
      ops::dropout(join, *stream);
      ops::layer_norm_forward(norm, *stream);
    }
    results[fused ? 1 : 0] = t.all();
  }
  CHECK(results[0] == results[1]);
}

TEST_CASE("CUDA ops: a norm's gradient is the same with and without those of its parameters",
          "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  const DType dtype = any_dtype();
  const std::int64_t rows = GENERATE(1, 7, 1100);
  const std::int64_t columns = GENERATE(1, 264, 1300);
  const bool centres = GENERATE(true, false);
  CAPTURE(name_of(dtype), rows, columns, centres);
  std::vector<TensorBytes> gradients;
  for (const bool of_parameters : {false, true}) {
    DeviceTensors t(dtype, gpu->memory(), *stream);
    const TensorView gradient = t.matrix(rows, columns);
    ops::LayerNormBackwardArgs args{.input = t.matrix(rows, columns),
                                    .weight = t.vector(columns),
                                    .mean = centres ? t.f32({rows}) : TensorView(),
                                    .rstd = t.f32({rows}),
                                    .output_gradient = t.matrix(rows, columns),
                                    .residual = gradient,
                                    .input_gradient = gradient,
                                    .weight_gradient = {},
                                    .bias_gradient = {}};
    if (of_parameters) args.weight_gradient = t.f32({columns});
    if (of_parameters && centres) args.bias_gradient = t.f32({columns});
    ops::layer_norm_backward(args, *stream);
    gradients.push_back(t.all().front());
  }
  CHECK(gradients[0] == gradients[1]);
}

TEST_CASE("CUDA ops: sums of rows are close to the CPU's in one slab and in many", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  const auto [rows, columns] = GENERATE(table<std::int64_t, std::int64_t>(
      {{1, 520}, {13, 33}, {3000, 8}, {1300, 300}, {40, 35'000}}));
  const bool accumulate = GENERATE(false, true);
  CAPTURE(name_of(dtype), rows, columns, accumulate);
  CHECK(compare(*gpu, dtype, Promise::close,
                [&, rows = rows, columns = columns](DeviceTensors& t, StreamView stream) {
                  for (const std::int64_t first : {0, 1}) {
                    const TensorView gradient = range(t, dtype, first, rows * columns);
                    for (int again = 0; again < 2; ++again) {
                      ops::weight_gradient(
                          {.product = {.a = {}, .b = gradient.reshaped({rows, columns}), .out = {}},
                           .bias_gradient = t.f32({columns}),
                           .accumulate_bias = accumulate},
                          stream);
                    }
                  }
                }) == "");
}

TEST_CASE("CUDA ops: classifiers are close to the CPU's", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  const auto [rows, classes] =
      GENERATE(table<std::int64_t, std::int64_t>({{1, 3}, {70, 999}, {33, 2048}, {5, 65}}));
  const bool accumulate = GENERATE(true, false);
  CAPTURE(name_of(dtype), rows, classes, accumulate);
  CHECK(compare(*gpu, dtype, Promise::rounded_logits,
                [&, rows = rows, classes = classes](DeviceTensors& t, StreamView stream) {
                  constexpr std::int64_t channels = 40;
                  const ops::ClassifierSizes sizes{rows, channels, classes, dtype};
                  const TensorView workspace =
                      t.workspace(ops::classifier_workspace(sizes, stream.device().kind));
                  const TensorView input = t.matrix(rows, channels);
                  const TensorView weight = t.matrix(classes, channels);
                  ops::classifier_logits({.input = input,
                                          .weight = weight,
                                          .logits = t.f32({rows, classes}),
                                          .workspace = workspace},
                                         stream);
                  ops::ClassifierLossArgs loss{
                      .input = input,
                      .weight = weight,
                      .labels = t.ramp({rows},
                                       [&](std::int64_t i) {
                                         return i % 5 == 4 ? ignored_label : i * 31 % classes;
                                       }),
                      .factor = accumulate ? 1.0F : 0.75F,
                      .loss_sum = t.number(2.5),
                      .workspace = workspace};
                  ops::classifier_loss(loss, stream);
                  loss.label_weight = t.f32({1});
                  loss.input_gradient = input;
                  loss.weight_gradient = t.f32({classes, channels});
                  loss.accumulate_weight = accumulate;
                  ops::classifier_loss(loss, stream);
                }) == "");
}

TEST_CASE("CUDA ops: means of squared errors and of values are close to the CPU's", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  const auto [rows, columns] =
      GENERATE(table<std::int64_t, std::int64_t>({{1, 1}, {70, 3}, {5, 1000}, {300, 136}}));
  const bool in_place = GENERATE(true, false);
  CAPTURE(name_of(dtype), rows, columns, in_place);
  CHECK(compare(*gpu, dtype, Promise::close,
                [&, rows = rows, columns = columns](DeviceTensors& t, StreamView stream) {
                  ops::MeanLossArgs loss{
                      .values = t.matrix(rows, columns),
                      .targets = t.f32({rows, columns}),
                      .labels = t.ramp(
                          {rows}, [](std::int64_t i) { return i % 5 == 4 ? ignored_label : 0; }),
                      .factor = 0.75F,
                      .losses = t.f32({rows}),
                      .loss_sum = t.number(2.5)};
                  ops::mean_loss(loss, stream);
                  loss.label_weight = t.f32({1});
                  loss.gradient = in_place ? loss.values : t.matrix(rows, columns);
                  ops::mean_loss(loss, stream);
                  loss.targets = {};
                  ops::mean_loss(loss, stream);
                }) == "");
}

TEST_CASE("CUDA ops: a loss is that of logits which are rounded to its dtype", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  CAPTURE(name_of(dtype));
  const ops::ClassifierSizes sizes{9, 400, 700, dtype};
  DeviceTensors t(dtype, gpu->memory(), *stream);
  const TensorView input = t.matrix(sizes.rows, sizes.channels);
  const TensorView weight = t.matrix(sizes.classes, sizes.channels);
  const TensorView workspace = t.workspace(ops::classifier_workspace(sizes, stream->device().kind));
  std::vector<float> logits(static_cast<std::size_t>(sizes.rows * sizes.classes));
  const HostView here(logits, {sizes.rows, sizes.classes});
  ops::classifier_logits({input, weight, here, workspace}, *stream);
  double loss = 0;
  const TensorView sum = t.number(0);
  ops::classifier_loss({.input = input,
                        .weight = weight,
                        .labels = t.ramp({sizes.rows}, [](std::int64_t i) { return 70 * i; }),
                        .loss_sum = sum,
                        .workspace = workspace},
                       *stream);
  ops::convert(sum, HostView(&loss, DType::f64, {1}), *stream);
  stream->synchronize();
  const auto loss_of = [&](const auto& value_of) {
    double all = 0;
    for (std::int64_t row = 0; row < sizes.rows; ++row) {
      double exponentials = 0;
      const float* const own = logits.data() + row * sizes.classes;
      for (std::int64_t i = 0; i < sizes.classes; ++i) exponentials += std::exp(value_of(own[i]));
      all += std::log(exponentials) - value_of(own[70 * row]);
    }
    return all;
  };
  const double rounded = loss_of([&](float logit) -> double {
    if (dtype == DType::bf16) return to_float(ops::from_float<BFloat16>(logit));
    return to_float(ops::from_float<Float16>(logit));
  });
  const double precise = loss_of([](float logit) { return static_cast<double>(logit); });
  CHECK(loss == Catch::Approx(rounded).epsilon(1e-6));
  CHECK(std::abs(precise - rounded) > 1e-5 * precise);
}

TEST_CASE("CUDA ops: losses of many rows are added up in parts", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  constexpr std::int64_t rows = 4500;
  CHECK(compare(*gpu, DType::f32, Promise::close, [](DeviceTensors& t, StreamView stream) {
          const DeviceKind device = stream.device().kind;
          ops::classifier_loss({.input = t.matrix(rows, 4),
                                .weight = t.matrix(3, 4),
                                .labels = t.numbers({rows}, 3),
                                .loss_sum = t.number(2.5),
                                .workspace = t.workspace(
                                    ops::classifier_workspace({rows, 4, 3, DType::f32}, device))},
                               stream);
        }) == "");
}

TEST_CASE("CUDA ops: results repeat bit for bit in whatever order blocks and threads run",
          "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const DType dtype = any_dtype();
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  const auto first = test::run_all_ops({dtype, gpu->memory(), *stream});
  for (const std::string seed : {"1", "2"}) {
    CAPTURE(name_of(dtype), seed);
    const test::Variable order(test::stand_in_seed, seed);
    CHECK((test::run_all_ops({dtype, gpu->memory(), *stream}) == first));
  }
}

TEST_CASE("CUDA ops: halves are widened on the way from the host and rounded on the way back",
          "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  constexpr std::int64_t numel = 3'000'001;
  std::vector<float> values = test::random_values(numel, 1);
  test::TypedValues halves(values, DType::bf16);
  std::vector<float> back(numel);
  test::TypedValues rounded(std::vector<float>(numel), DType::bf16);
  const Buffer buffer(numel * 4, gpu->memory(), *stream);
  const TensorView there = buffer.block().cut(0, DType::f32, {numel});
  ops::convert(halves.view({numel}), there, *stream);
  ops::convert(there, HostView(back, {numel}), *stream);
  ops::convert(there, rounded.view({numel}), *stream);
  stream->synchronize();
  CHECK((back == halves.read()));
  CHECK((rounded.read() == halves.read()));
}

TEST_CASE("CUDA ops: rows are copied and numbers that are not finite found across the sides",
          "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  std::vector<float> values = test::random_values(600, 1);
  const Buffer buffer(2400, gpu->memory(), *stream);
  const TensorView there = buffer.block().cut(0, DType::f32, {30, 20});
  ops::convert(HostView(values, {30, 20}), there, *stream);
  std::vector<float> columns(30 * 7);
  ops::copy_rows(there.columns(3, 7), HostView(columns, {30, 7}), *stream);
  std::vector<float> copy(600);
  std::vector<std::int32_t> flag{0};
  ops::copy_finite({there, HostView(copy, {30, 20}), HostView(flag, {1})}, *stream);
  stream->synchronize();
  CHECK(columns[7 * 4 + 2] == values[20 * 4 + 5]);
  CHECK((copy == values));
  CHECK(flag[0] == 0);
  values[123] = std::numeric_limits<float>::quiet_NaN();
  ops::convert(HostView(values, {30, 20}), there, *stream);
  ops::copy_finite({there, HostView(copy, {30, 20}), HostView(flag, {1})}, *stream);
  stream->synchronize();
  CHECK(flag[0] == 1);
}

TEST_CASE("CUDA ops: a view of the host is refused", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  std::vector<float> values(4);
  const HostView view(values, {4});
  CHECK_THROWS_WITH(ops::add(view, view, *stream),
                    Catch::Matchers::ContainsSubstring("given host memory"));
}

}  // namespace dstrain
