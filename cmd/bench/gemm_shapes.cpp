#include "cmd/bench/gemm_shapes.h"

#include "runtime/model/loss_unit.h"
#include "runtime/ops/classifier_plan.h"

namespace dstrain::bench {
namespace {

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
                    .f32_out = true,
                    .accumulate = true});
}

/// A chunk of rows and a piece of the vocabulary, as the head takes them at a time.
struct HeadPiece {
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t columns;
  double times;
};

HeadPiece head_piece(const model::Gpt2Config& config, std::int64_t rows) {
  Arena nothing;  // only sizes are asked for
  const std::int64_t chunk = model::loss_chunk_rows(rows);
  const ops::ClassifierPlan plan(nothing, {chunk, config.n_embd, config.vocab_size, DType::f32});
  const std::int64_t columns = plan.logits().width(0);
  return {chunk, config.n_embd, columns,
          static_cast<double>(rows) / static_cast<double>(chunk) *
              static_cast<double>(config.vocab_size) / static_cast<double>(columns)};
}

/// logits = x E^T with E (columns, channels), then dx += dlogits E, then dE += dlogits^T x.
void add_head(std::vector<GemmShape>& shapes, const HeadPiece& piece) {
  const auto& [rows, channels, columns, times] = piece;
  shapes.push_back({.name = "head forward",
                    .m = rows,
                    .n = columns,
                    .k = channels,
                    .times = times,
                    .b_transposed = true,
                    .f32_out = true});
  shapes.push_back({.name = "head dX",
                    .m = rows,
                    .n = channels,
                    .k = columns,
                    .times = times,
                    .f32_out = true,
                    .accumulate = true});
  shapes.push_back({.name = "head dW",
                    .m = columns,
                    .n = channels,
                    .k = rows,
                    .times = times,
                    .a_transposed = true,
                    .f32_out = true,
                    .accumulate = true});
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
  add_head(shapes, head_piece(config, rows));
  return shapes;
}

ops::MatmulArgs product_of(const GemmShape& shape, DType dtype) {
  const auto view = [](DType type, Shape sizes) {
    return TensorView(type, sizes);
  };
  const auto matrix = [&](DType type, std::int64_t rows, std::int64_t columns, bool transposed) {
    return view(type, transposed ? Shape{columns, rows} : Shape{rows, columns});
  };
  return {.a = matrix(dtype, shape.m, shape.k, shape.a_transposed),
          .b = matrix(dtype, shape.k, shape.n, shape.b_transposed),
          .out = matrix(shape.f32_out ? DType::f32 : dtype, shape.m, shape.n, false),
          .bias = shape.bias ? view(dtype, {shape.n}) : TensorView(),
          .a_transposed = shape.a_transposed,
          .b_transposed = shape.b_transposed,
          .accumulate = shape.accumulate,
          .workspace = {}};
}

}  // namespace dstrain::bench
