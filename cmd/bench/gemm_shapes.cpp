#include "cmd/bench/gemm_shapes.h"

#include <algorithm>

namespace dstrain::bench {
namespace {

/// As the head does: 256 rows at a time, or more when 4 Mi logits hold them.
std::int64_t head_rows(std::int64_t rows, std::int64_t vocabulary) {
  return std::min(rows, std::max<std::int64_t>(256, (std::int64_t{1} << 22) / vocabulary));
}

struct Linear {
  std::string name;
  std::int64_t rows;
  std::int64_t inputs;
  std::int64_t outputs;
  double times;
};

/// y = x W + b with W (inputs, outputs): y, then dx = dy W^T, then dW += x^T dy.
void add_linear(std::vector<GemmShape>& shapes, const Linear& linear) {
  const auto& [name, rows, inputs, outputs, times] = linear;
  shapes.push_back({.name = name + " forward",
                    .m = rows,
                    .n = outputs,
                    .k = inputs,
                    .times = times,
                    .bias = true});
  shapes.push_back({.name = name + " dX",
                    .m = rows,
                    .n = inputs,
                    .k = outputs,
                    .times = times,
                    .b_transposed = true});
  shapes.push_back({.name = name + " dW",
                    .m = inputs,
                    .n = outputs,
                    .k = rows,
                    .times = times,
                    .a_transposed = true,
                    .weight_gradient = true});
}

/// logits = x E^T with E (vocabulary, channels): logits, then dx = dlogits E, then
/// dE += dlogits^T x.
void add_head(std::vector<GemmShape>& shapes, const Linear& head) {
  const auto& [name, rows, channels, vocabulary, times] = head;
  shapes.push_back({.name = name + " forward",
                    .m = rows,
                    .n = vocabulary,
                    .k = channels,
                    .times = times,
                    .b_transposed = true});
  shapes.push_back(
      {.name = name + " dX", .m = rows, .n = channels, .k = vocabulary, .times = times});
  shapes.push_back({.name = name + " dW",
                    .m = vocabulary,
                    .n = channels,
                    .k = rows,
                    .times = times,
                    .a_transposed = true,
                    .weight_gradient = true});
}

}  // namespace

std::vector<GemmShape> gemm_shapes(const model::Gpt2Config& config, std::int64_t rows) {
  const auto layers = static_cast<double>(config.n_layer);
  const std::int64_t channels = config.n_embd;
  std::vector<GemmShape> shapes;
  add_linear(shapes, {"attn.c_attn", rows, channels, 3 * channels, layers});
  add_linear(shapes, {"attn.c_proj", rows, channels, channels, layers});
  add_linear(shapes, {"mlp.c_fc", rows, channels, config.n_inner, layers});
  add_linear(shapes, {"mlp.c_proj", rows, config.n_inner, channels, layers});
  const std::int64_t chunk = head_rows(rows, config.vocab_size);
  add_head(shapes, {"head", chunk, channels, config.vocab_size,
                    static_cast<double>(rows) / static_cast<double>(chunk)});
  return shapes;
}

ops::MatmulArgs product_of(const GemmShape& shape, DType dtype) {
  const auto view = [](DType type, Shape sizes) {
    return TensorView(nullptr, type, sizes);
  };
  const auto matrix = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
    return view(dtype, transposed ? Shape{columns, rows} : Shape{rows, columns});
  };
  return {.a = matrix(shape.m, shape.k, shape.a_transposed),
          .b = matrix(shape.k, shape.n, shape.b_transposed),
          .out = view(shape.weight_gradient ? DType::f32 : dtype, {shape.m, shape.n}),
          .bias = shape.bias ? view(dtype, {shape.n}) : TensorView(),
          .a_transposed = shape.a_transposed,
          .b_transposed = shape.b_transposed,
          .accumulate = shape.weight_gradient,
          .workspace = {}};
}

}  // namespace dstrain::bench
