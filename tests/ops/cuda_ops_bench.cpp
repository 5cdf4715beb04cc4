// What ops reach on a GPU, beside what it reaches at all: a large copy and a large product, which
// are measured in the same run, before and after.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include <fmt/format.h>

#include "runtime/device/cpu_stream.h"
#include "runtime/ops/activation.h"
#include "runtime/ops/add.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/classifier.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/embedding.h"
#include "runtime/ops/layer_norm.h"
#include "runtime/ops/matmul_activation.h"
#include "runtime/ops/residual_norm.h"
#include "runtime/ops/square_sum.h"
#include "runtime/ops/update.h"
#include "runtime/ops/weight_gradient.h"
#include "tests/support/catch.h"
#include "tests/support/device_tensors.h"
#include "tests/support/skip.h"
#include "tests/support/test_gpu.h"

namespace dstrain {
namespace {

using test::DeviceTensors;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Seconds of one call among many: by how much longer three groups take than one, so that the wait
/// for the stream at the end, which may take milliseconds, counts for nothing. The median.
double seconds_of(StreamView stream, const std::function<void()>& call) {
  const auto group = [&](int calls) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    stream.synchronize();
    return seconds_since(begin);
  };
  const auto one_of = [&](int calls) {
    return (group(3 * calls) - group(calls)) / (2 * calls);
  };
  group(2);
  const double about = std::max(one_of(3), 1e-6);
  const int calls = std::clamp(static_cast<int>(0.02 / about), 1, 300);
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) times.push_back(one_of(calls));
  return median(times);
}

/// Random values are made on the host and would take longer than all that is measured: parts of a
/// tensor repeat.
TensorView fill(const TensorView& values, StreamView stream) {
  constexpr std::int64_t part = 1 << 16;
  test::TypedValues random(test::random_values(part, 1, 0.5F), values.dtype());
  const TensorView flat = values.reshaped({values.numel()});
  for (std::int64_t begin = 0; begin < values.numel(); begin += part) {
    const std::int64_t count = std::min(part, values.numel() - begin);
    ops::convert(random.view({count}), flat.part(begin, {count}), stream);
  }
  stream.synchronize();
  return values;
}

struct Bench {
  DeviceTensors tensors;
  StreamView stream;
  Backend& gpu;
  double copy_rate = 0;     ///< bytes read and written, a second
  double product_rate = 0;  ///< bf16

  TensorView bf16(Shape shape) { return fill(tensors.zeros(DType::bf16, shape), stream); }
  TensorView f32(Shape shape) { return fill(tensors.zeros(DType::f32, shape), stream); }
  void print(const std::string& what, double seconds, double flops, double bytes) const {
    fmt::print("{:<56} {:>9.1f} us", what, seconds * 1e6);
    if (flops > 0) {
      fmt::print("  {:>7.1f} TFLOP/s, {:>5.1f} % of the product's", flops / seconds / 1e12,
                 100 * flops / seconds / product_rate);
    }
    if (bytes > 0) {
      fmt::print("  {:>7.0f} GB/s, {:>5.1f} % of the copy's", bytes / seconds / 1e9,
                 100 * bytes / seconds / copy_rate);
    }
    fmt::print("\n");
  }
};

/// What an op costs that has next to nothing to do: to launch it, to run it, to wait for it.
void measure_small(Bench& b) {
  const TensorView values = b.f32({256});
  const auto call = [&] {
    ops::add(values, values, b.stream);
  };
  std::vector<double> launches;
  std::vector<double> waits;
  for (int i = 0; i < 50; ++i) {
    const auto begin = Clock::now();
    call();
    launches.push_back(seconds_since(begin));
    const auto launched = Clock::now();
    b.stream.synchronize();
    waits.push_back(seconds_since(launched));
  }
  b.print("floor: to launch a small op", median(launches), 0, 0);
  b.print("floor: to wait for one", median(waits), 0, 0);
  b.print("floor: one of many", seconds_of(b.stream, call), 0, 0);
}

ops::MatmulArgs product_of(Bench& b, std::int64_t m, std::int64_t n, std::int64_t k) {
  ops::MatmulArgs product{.a = b.bf16({m, k}), .b = b.bf16({k, n}), .out = b.bf16({m, n})};
  product.workspace = b.tensors.workspace(product);
  return product;
}

void measure_ceilings(Bench& b) {
  const TensorView from = b.bf16({1 << 29});
  const TensorView to = b.tensors.zeros(DType::bf16, from.shape());
  const double copy = seconds_of(b.stream, [&] { ops::convert(from, to, b.stream); });
  b.copy_rate = 2 * static_cast<double>(from.bytes()) / copy;
  constexpr std::int64_t edge = 8192;
  const ops::MatmulArgs product = product_of(b, edge, edge, edge);
  const double time = seconds_of(b.stream, [&] { ops::matmul(product, b.stream); });
  b.product_rate = 2 * std::pow(double{edge}, 3) / time;
  b.print("ceiling: copy of 1 GiB", copy, 0, 2 * static_cast<double>(from.bytes()));
  b.print("ceiling: product of 8192 x 8192 x 8192, bf16", time, b.product_rate * time, 0);
}

void measure_products(Bench& b) {
  for (const auto& [n, k] : {std::pair{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}}) {
    const ops::MatmulArgs product = product_of(b, 8192, n, k);
    const double time = seconds_of(b.stream, [&] { ops::matmul(product, b.stream); });
    b.print(fmt::format("product of 8192 x {} x {}, bf16", n, k), time, 2.0 * 8192 * n * k, 0);
    ops::MatmulArgs gradient{.a = b.bf16({8192, k}),
                             .b = b.bf16({8192, n}),
                             .out = b.f32({k, n}),
                             .a_transposed = true,
                             .accumulate = true};
    gradient.workspace = b.tensors.workspace(gradient);
    const TensorView bias = b.f32({n});
    const double both = seconds_of(b.stream, [&] {
      ops::weight_gradient({.product = gradient, .bias_gradient = bias}, b.stream);
    });
    b.print(fmt::format("gradients of a weight of {} x {} and bias", k, n), both,
            2.0 * 8192 * n * k, 0);
  }
  const ops::MatmulArgs wide = product_of(b, 8192, 3072, 768);
  const TensorView active = b.bf16({8192, 3072});
  const double time = seconds_of(b.stream, [&] {
    ops::matmul_activation_forward({.product = wide, .active = active}, b.stream);
  });
  b.print("the same of 3072, with GELU", time, 2.0 * 8192 * 3072 * 768, 0);
}

struct AttentionRow {
  const char* what;
  ops::AttentionSizes sizes;  ///< of causal attention
  std::int64_t rotary_dims = 0;
  float dropout = 0;
};

void measure_attention(Bench& b, const AttentionRow& row) {
  const ops::AttentionSizes& s = row.sizes;
  ops::AttentionRule rule{.divisor = 8, .rotary = {.dims = row.rotary_dims}};
  rule.rotary.frequencies.fill(0.1F);
  const Shape wide{s.sequences * s.tokens, s.heads * s.head_size};
  const Shape narrow{s.sequences * s.keys, s.kv_heads * s.head_size};
  ops::AttentionArgs forward{.sizes = s,
                             .rule = rule,
                             .query = b.bf16(wide),
                             .key = b.bf16(narrow),
                             .value = b.bf16(narrow),
                             .output = b.bf16(wide),
                             .logsumexp = b.f32({s.sequences, s.heads, s.tokens})};
  forward.workspace =
      b.tensors.workspace(ops::attention_forward_workspace(s, rule, DeviceKind::cuda));
  if (row.dropout > 0) {
    forward.dropout = {.rate = row.dropout, .seed = 1, .counter = b.tensors.counter(1, 1)};
  }
  const double flops =
      4.0 * static_cast<double>(s.sequences * s.tokens * s.keys * s.heads * s.head_size) / 2;
  const double there = seconds_of(b.stream, [&] { ops::attention_forward(forward, b.stream); });
  const std::string name = fmt::format("attention of {} x {} x {} x {}{}", s.sequences, s.tokens,
                                       s.heads, s.head_size, row.what);
  b.print(name, there, flops, 0);
  const ops::AttentionBackwardArgs backward{
      .sizes = s,
      .rule = rule,
      .query = forward.query,
      .key = forward.key,
      .value = forward.value,
      .output = forward.output,
      .logsumexp = forward.logsumexp,
      .output_gradient = b.bf16(wide),
      .query_gradient = b.bf16(wide),
      .key_gradient = b.bf16(narrow),
      .value_gradient = b.bf16(narrow),
      .workspace =
          b.tensors.workspace(ops::attention_backward_workspace(s, rule, DeviceKind::cuda)),
      .dropout = forward.dropout};
  const double back = seconds_of(b.stream, [&] { ops::attention_backward(backward, b.stream); });
  b.print(name + ", gradients", back, 2.5 * flops, 0);
}

void measure_attentions(Bench& b) {
  measure_attention(b, {"", {8, 1024, 1024, 12, 12, 64}});
  measure_attention(b, {", dropped", {8, 1024, 1024, 12, 12, 64}, 0, 0.1F});
  measure_attention(b, {"", {8, 1024, 1024, 8, 8, 128}});
  measure_attention(b, {", 8 of keys, turned", {2, 4096, 4096, 32, 8, 128}, 128});
  measure_attention(b, {", 8 of keys, turned", {1, 8192, 8192, 32, 8, 128}, 128});
  measure_attention(b, {"", {8, 1024, 1024, 4, 4, 256}});
}

void measure_rows(Bench& b) {
  constexpr std::int64_t rows = 8192;
  constexpr std::int64_t columns = 768;
  constexpr double half_bytes = 2.0 * rows * columns;
  const ops::LayerNormArgs norm{.input = b.bf16({rows, columns}),
                                .weight = b.bf16({columns}),
                                .bias = b.bf16({columns}),
                                .mean = b.f32({rows}),
                                .rstd = b.f32({rows}),
                                .output = b.bf16({rows, columns}),
                                .eps = 1e-5F};
  b.print("layer norm of 8192 x 768",
          seconds_of(b.stream, [&] { ops::layer_norm_forward(norm, b.stream); }), 0,
          2 * half_bytes);
  const auto batch = [&](const TensorView& matrix) {
    return matrix.reshaped({1, rows, columns});
  };
  const ops::DropoutArgs join{.input = batch(b.bf16({rows, columns})),
                              .residual = batch(b.bf16({rows, columns})),
                              .output = batch(norm.input),
                              .site = {}};
  ops::LayerNormArgs of_sum = norm;
  of_sum.input = join.output;
  of_sum.output = batch(norm.output);
  const auto two_passes = [&] {
    ops::dropout(join, b.stream);
    ops::layer_norm_forward(of_sum, b.stream);
  };
  const auto one_pass = [&] {
    ops::residual_norm_forward({.join = join, .norm = of_sum}, b.stream);
  };
  b.print("a branch and layer norm of 8192 x 768, in two passes", seconds_of(b.stream, two_passes),
          0, 5 * half_bytes);
  b.print("a branch and layer norm of 8192 x 768, in one pass", seconds_of(b.stream, one_pass), 0,
          4 * half_bytes);
  const ops::LayerNormBackwardArgs back{.input = norm.input,
                                        .weight = norm.weight,
                                        .mean = norm.mean,
                                        .rstd = norm.rstd,
                                        .output_gradient = b.bf16({rows, columns}),
                                        .residual = b.bf16({rows, columns}),
                                        .input_gradient = b.bf16({rows, columns}),
                                        .weight_gradient = b.f32({columns}),
                                        .bias_gradient = b.f32({columns})};
  b.print("gradients of layer norm of 8192 x 768",
          seconds_of(b.stream, [&] { ops::layer_norm_backward(back, b.stream); }), 0,
          4 * half_bytes);
  const ops::ActivationBackwardArgs active{.input = b.bf16({rows, 4 * columns}),
                                           .output_gradient = b.bf16({rows, 4 * columns}),
                                           .input_gradient = b.bf16({rows, 4 * columns}),
                                           .output = b.bf16({rows, 4 * columns})};
  b.print("gradients of GELU, and GELU, of 8192 x 3072",
          seconds_of(b.stream, [&] { ops::activation_backward(active, b.stream); }), 0,
          16 * half_bytes);
  const TensorView tokens = b.tensors.numbers({8, 1024}, 50257);
  const ops::EmbeddingBackwardArgs embedding{.tokens = tokens,
                                             .output_gradient = b.bf16({8, 1024, columns}),
                                             .token_gradient = b.f32({50257, columns}),
                                             .position_gradient = b.f32({1024, columns}),
                                             .accumulate_token = true,
                                             .accumulate_position = true};
  b.print("gradients of the embedding, 8192 tokens",
          seconds_of(b.stream, [&] { ops::embedding_backward(embedding, b.stream); }), 0,
          half_bytes * 5);
}

void measure_classifier(Bench& b) {
  const ops::ClassifierSizes sizes{8192, 768, 50257, DType::bf16};
  const ops::ClassifierLossArgs loss{
      .input = b.bf16({sizes.rows, sizes.channels}),
      .weight = b.bf16({sizes.classes, sizes.channels}),
      .labels = b.tensors.numbers({sizes.rows}, 50257),
      .loss_sum = b.tensors.zeros(DType::f64, {1}),
      .label_weight = b.f32({1}),
      .input_gradient = b.bf16({sizes.rows, sizes.channels}),
      .weight_gradient = b.f32({sizes.classes, sizes.channels}),
      .workspace = b.tensors.workspace(ops::classifier_workspace(sizes, DeviceKind::cuda))};
  const double time = seconds_of(b.stream, [&] { ops::classifier_loss(loss, b.stream); });
  b.print("classifier of 8192 x 768 x 50257, gradients", time, 6.0 * 8192 * 768 * 50257, 0);
}

/// Between host and device, of memory that CUDA has pinned and of any.
void measure_copies(Bench& b) {
  constexpr std::int64_t numel = 1 << 26;
  const TensorView there = b.f32({numel});
  CpuStream inline_stream(CpuStream::Mode::inline_on_caller);
  HostMemory pageable;
  const auto pinned = b.gpu.pinned(pageable);
  for (MemoryResource* const memory : {pinned.get(), static_cast<MemoryResource*>(&pageable)}) {
    const HostBuffer block(4 * numel, *memory, inline_stream);
    const HostView here(block.as<float>(), {numel});
    const char* const kind = memory == &pageable ? "pageable" : "pinned";
    const auto bytes = static_cast<double>(there.bytes());
    b.print(fmt::format("copy of 256 MiB from {} memory", kind),
            seconds_of(b.stream, [&] { ops::convert(here, there, b.stream); }), 0, bytes);
    b.print(fmt::format("copy of 256 MiB to {} memory", kind),
            seconds_of(b.stream, [&] { ops::convert(there, here, b.stream); }), 0, bytes);
  }
}

void measure_flat(Bench& b) {
  constexpr std::int64_t numel = 124'000'000;
  const TensorView parameters = b.f32({numel});
  const TensorView gradients = b.f32({numel});
  const ops::UpdateArgs adamw{
      .parameters = parameters,
      .gradients = gradients,
      .states = {b.f32({numel}), b.tensors.zeros(DType::f32, {numel})},
      .scalars = b.tensors.scalars(rules::scalars(rules::Adam::Settings{}, {1, 1e-6})),
      .working = b.bf16({numel})};
  b.print("AdamW of 124 M parameters", seconds_of(b.stream, [&] { ops::update(adamw, b.stream); }),
          0, 30.0 * numel);
  const TensorView sum = b.tensors.zeros(DType::i64, {ExactSum::numel});
  b.print("exact squares of 124 M gradients",
          seconds_of(b.stream,
                     [&] {
                       ops::add_squares({{gradients}, sum}, b.stream);
                     }),
          0, 4.0 * numel);
}

}  // namespace

TEST_CASE("CUDA bench: ops of GPT-2 124M beside ceilings", "[cuda][bench]") {
  if (test::stands_in_for_gpu()) test::skip("what stands in for a GPU has no speed");
  const auto gpu = test::open_test_gpu();
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  double copy_rate = 0;
  double product_rate = 0;
  const auto run = [&](const auto& measure) {
    Bench b{DeviceTensors(DType::bf16, gpu->memory(), *stream), *stream, *gpu, copy_rate,
            product_rate};
    measure(b);
    std::fflush(stdout);  // what there is comes back even if the rest is ended
    copy_rate = b.copy_rate;
    product_rate = b.product_rate;
  };
  run(measure_small);
  run(measure_ceilings);
  run(measure_products);
  run(measure_attentions);
  run(measure_rows);
  run(measure_classifier);
  run(measure_flat);
  run(measure_copies);
  run(measure_ceilings);
}

}  // namespace dstrain
