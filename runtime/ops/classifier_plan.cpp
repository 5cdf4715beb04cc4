#include "runtime/ops/classifier_plan.h"

#include <algorithm>

#include "runtime/ops/panels.h"

namespace dstrain::ops {
namespace {

/// 6 pieces for GPT-2's vocabulary. A piece of 768 channels packs into 25 MiB.
constexpr std::int64_t piece_columns_max = 8448;

std::int64_t piece_columns(std::int64_t classes) {
  const std::int64_t pieces = (classes + piece_columns_max - 1) / piece_columns_max;
  return round_up((classes + pieces - 1) / pieces, panel_columns);
}

}  // namespace

ClassifierPlan::ClassifierPlan(Arena& arena, const ClassifierSizes& sizes)
    : logits_{arena.take({sizes.rows, sizes.classes}), piece_columns(sizes.classes)},
      input_gradient_(arena.take({sizes.rows, sizes.channels})),
      losses_(arena.take({sizes.rows})),
      softmax_(arena.take({sizes.rows, 2})) {
  if (is_half(sizes.dtype)) {
    rounded_ = arena.take({sizes.rows, logits_.width(0)}, sizes.dtype);
  }
  products_ = arena.take({products_workspace(sizes)}, DType::u8);
}

TensorView ClassifierPlan::gradient(std::int64_t piece) const {
  const TensorView values = logits_.piece(piece);
  return rounded_.shape().rank() == 0 ? values : rounded_.part(0, values.shape());
}

MatmulArgs ClassifierPlan::logits_product(const TensorView& input,
                                          const TensorView& weight,
                                          std::int64_t piece) const {
  return {.a = input,
          .b = rows_of_piece(weight, piece),
          .out = logits_.piece(piece),
          .b_transposed = true,
          .workspace = products_};
}

MatmulArgs ClassifierPlan::weight_product(const TensorView& input,
                                          const TensorView& sum,
                                          bool accumulate,
                                          std::int64_t piece) const {
  return {.a = gradient(piece),
          .b = input,
          .out = rows_of_piece(sum, piece),
          .a_transposed = true,
          .accumulate = accumulate,
          .workspace = products_};
}

MatmulArgs ClassifierPlan::input_product(const TensorView& weight, std::int64_t piece) const {
  return {.a = gradient(piece),
          .b = rows_of_piece(weight, piece),
          .out = input_gradient_,
          .accumulate = piece > 0,
          .workspace = products_};
}

TensorView ClassifierPlan::rows_of_piece(const TensorView& matrix, std::int64_t piece) const {
  return matrix.rows(logits_.first_column(piece), logits_.width(piece));
}

/// The first piece is the largest.
Bytes ClassifierPlan::products_workspace(const ClassifierSizes& sizes) const {
  const TensorView input(sizes.dtype, {sizes.rows, sizes.channels});
  const TensorView weight(sizes.dtype, {sizes.classes, sizes.channels});
  const TensorView sum(DType::f32, weight.shape());
  return std::max({matmul_workspace(logits_product(input, weight, 0), DeviceKind::cpu),
                   matmul_workspace(weight_product(input, sum, true, 0), DeviceKind::cpu),
                   matmul_workspace(input_product(weight, 0), DeviceKind::cpu)});
}

}  // namespace dstrain::ops
