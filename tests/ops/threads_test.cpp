#include <array>
#include <cstring>

#include <catch2/catch.hpp>

#include "runtime/device/cpu_stream.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/bias_gradient.h"
#include "runtime/ops/cross_entropy.h"
#include "runtime/ops/dropout.h"
#include "runtime/ops/embedding.h"
#include "runtime/ops/gelu.h"
#include "runtime/ops/layer_norm.h"
#include "tests/support/random_values.h"
#include "tests/support/typed_values.h"

#ifdef _OPENMP
#include <omp.h>

namespace dstrain {
namespace {

constexpr std::int64_t thread_sequences = 3;
constexpr std::int64_t tokens = 77;
constexpr std::int64_t heads = 3;
constexpr std::int64_t channels = 60;
constexpr std::int64_t rows = thread_sequences * tokens;

/// Tensors of random values by name; all of them are the result of a run.
class Tensors {
 public:
  explicit Tensors(DType dtype) : dtype_(dtype) {}
  HostView activation(std::int64_t columns) {
    return take(dtype_, {thread_sequences, tokens, columns});
  }
  HostView vector(std::int64_t numel) { return take(dtype_, {numel}); }
  HostView f32(Shape shape) { return take(DType::f32, shape); }
  [[nodiscard]] std::vector<float> all() const {
    std::vector<float> values;
    for (const auto& tensor : tensors_) {
      const std::vector<float> own = tensor->read();
      values.insert(values.end(), own.begin(), own.end());
    }
    return values;
  }

 private:
  HostView take(DType dtype, Shape shape) {
    const auto values = test::random_values(shape.numel(), tensors_.size() + 1);
    tensors_.push_back(std::make_unique<test::TypedValues>(values, dtype));
    return tensors_.back()->view(shape);
  }
  DType dtype_;
  std::vector<std::unique_ptr<test::TypedValues>> tensors_;
};

void run_attention(Tensors& t, StreamView stream) {
  const ops::AttentionSizes sizes{thread_sequences, tokens, heads, channels};
  const ops::DropoutSite site{.rate = 0.1F, .seed = 5, .step = 1, .first_sample = 2};
  const HostView qkv = t.activation(3 * channels);
  const HostView output = t.activation(channels);
  const HostView logsumexp = t.f32({thread_sequences, heads, tokens});
  std::vector<float> forward(static_cast<std::size_t>(ops::attention_forward_workspace(sizes)));
  std::vector<float> backward(static_cast<std::size_t>(ops::attention_backward_workspace(sizes)));
  ops::attention_forward(
      {.qkv = qkv,
       .output = output,
       .logsumexp = logsumexp,
       .workspace = HostView(forward, {static_cast<std::int64_t>(forward.size())}),
       .dropout = site},
      stream);
  ops::attention_backward(
      {.qkv = qkv,
       .output = output,
       .logsumexp = logsumexp,
       .output_gradient = t.activation(channels),
       .qkv_gradient = t.activation(3 * channels),
       .workspace = HostView(backward, {static_cast<std::int64_t>(backward.size())}),
       .dropout = site},
      stream);
}

void run_layer_norm(Tensors& t, StreamView stream) {
  const HostView input = t.activation(channels);
  const HostView weight = t.vector(channels);
  const HostView mean = t.f32({rows});
  const HostView rstd = t.f32({rows});
  ops::layer_norm_forward({.input = input,
                           .weight = weight,
                           .bias = t.vector(channels),
                           .mean = mean,
                           .rstd = rstd,
                           .output = t.activation(channels),
                           .eps = 1e-5F},
                          stream);
  ops::layer_norm_backward({.input = input,
                            .weight = weight,
                            .mean = mean,
                            .rstd = rstd,
                            .output_gradient = t.activation(channels),
                            .residual = t.activation(channels),
                            .input_gradient = t.activation(channels),
                            .weight_gradient = t.f32({channels}),
                            .bias_gradient = t.f32({channels})},
                           stream);
}

void run_embedding(Tensors& t, StreamView stream) {
  auto ids = test::random_tokens(rows, 1, 20);
  const HostView batch(ids, {thread_sequences, tokens});
  ops::embedding_forward({.tokens = batch,
                          .token_table = t.vector(20 * channels).reshaped({20, channels}),
                          .position_table = t.vector(80 * channels).reshaped({80, channels}),
                          .output = t.activation(channels)},
                         stream);
  ops::embedding_backward({.tokens = batch,
                           .output_gradient = t.activation(channels),
                           .token_gradient = t.f32({20, channels}),
                           .position_gradient = t.f32({80, channels})},
                          stream);
}

void run_others(Tensors& t, StreamView stream) {
  const HostView wide = t.activation(400);
  ops::gelu_forward(wide, t.activation(400), stream);
  ops::gelu_backward(wide, t.activation(400), t.activation(400), stream);
  ops::bias_gradient({.output_gradient = wide, .gradient = t.f32({400})}, stream);
  ops::dropout({.input = wide,
                .residual = t.activation(400),
                .output = t.activation(400),
                .site = {.rate = 0.3F, .seed = 1, .step = 2, .first_sample = 3}},
               stream);
  auto ids = test::random_tokens(rows, 3, 500);
  const HostView labels(ids, {rows});
  std::array<float, 1> label_weight{0.1F};
  double loss = 0;
  const ops::LogitPieces logits{t.f32({rows, 500}), 128};
  const HostView softmax = t.f32({rows, 2});
  ops::cross_entropy_forward({.logits = logits,
                              .labels = labels,
                              .losses = t.f32({rows}),
                              .softmax = softmax,
                              .label_weight = HostView(label_weight, {1}),
                              .loss_sum = HostView(&loss, DType::f64, {1})},
                             stream);
  ops::cross_entropy_backward({.logits = logits.piece(1),
                               .gradient = t.activation(128).reshaped({rows, 128}),
                               .labels = labels,
                               .first_column = 128,
                               .softmax = softmax,
                               .label_weight = HostView(label_weight, {1})},
                              stream);
}

std::vector<float> run_all(DType dtype, int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  Tensors tensors(dtype);
  run_attention(tensors, stream);
  run_layer_norm(tensors, stream);
  run_embedding(tensors, stream);
  run_others(tensors, stream);
  omp_set_num_threads(before);
  return tensors.all();
}

TEST_CASE("Ops: the bits do not depend on the number of threads", "[ops][threads]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const std::vector<float> one = run_all(dtype, 1);
  const int threads = GENERATE(2, 3, 20);
  const std::vector<float> many = run_all(dtype, threads);
  REQUIRE(one.size() == many.size());
  CHECK(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)) == 0);
}

}  // namespace
}  // namespace dstrain
#endif
