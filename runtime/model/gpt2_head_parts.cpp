#include "runtime/model/gpt2_head_parts.h"

#include <algorithm>

#include "runtime/ops/convert.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/panels.h"

namespace dstrain::model {
namespace {

/// 6 pieces for GPT-2's vocabulary. A piece of 768 channels packs into 25 MiB.
constexpr std::int64_t piece_columns_max = 8448;

std::int64_t piece_columns(std::int64_t vocabulary) {
  const std::int64_t pieces = (vocabulary + piece_columns_max - 1) / piece_columns_max;
  return round_up((vocabulary + pieces - 1) / pieces, ops::panel_columns);
}

/// The rows of a (V, C) matrix that belong to a piece of the logits.
TensorView piece_rows(const TensorView& matrix,
                      const ops::LogitPieces& logits,
                      std::int64_t piece) {
  return matrix.rows(logits.first_column(piece), logits.width(piece));
}

ops::MatmulArgs logits_product(const Gpt2HeadSpace& space,
                               const TensorView& wte,
                               std::int64_t piece) {
  return {.a = space.normed,
          .b = piece_rows(wte, space.logits, piece),
          .out = space.logits.piece(piece),
          .bias = {},
          .b_transposed = true,
          .workspace = space.products};
}

ops::MatmulArgs wte_product(const Gpt2HeadSpace& space,
                            const GradientTarget& target,
                            std::int64_t piece) {
  return {.a = space.logits.gradient(piece),
          .b = space.normed,
          .out = piece_rows(target.values, space.logits, piece),
          .bias = {},
          .a_transposed = true,
          .accumulate = target.accumulate,
          .workspace = space.products};
}

ops::MatmulArgs normed_product(const Gpt2HeadSpace& space,
                               const TensorView& wte,
                               std::int64_t piece) {
  return {.a = space.logits.gradient(piece),
          .b = piece_rows(wte, space.logits, piece),
          .out = space.normed_gradient,
          .bias = {},
          .accumulate = piece > 0,
          .workspace = space.products};
}

/// The first piece is the largest.
Bytes products_workspace(const Gpt2HeadSpace& space, const Gpt2HeadSizes& sizes) {
  const TensorView wte(sizes.options.dtype, {sizes.vocabulary, sizes.channels});
  const TensorView gradient(DType::f32, wte.shape());
  return std::max(
      {ops::matmul_workspace(logits_product(space, wte, 0), sizes.options.device),
       ops::matmul_workspace(wte_product(space, {gradient, true}, 0), sizes.options.device),
       ops::matmul_workspace(normed_product(space, wte, 0), sizes.options.device)});
}

}  // namespace

Gpt2HeadSpace::Gpt2HeadSpace(Arena& arena, const Gpt2HeadSizes& sizes)
    : normed(arena.take({sizes.rows, sizes.channels}, sizes.options.dtype)),
      normed_gradient(arena.take({sizes.rows, sizes.channels})),
      logits{arena.take({sizes.rows, sizes.vocabulary}), piece_columns(sizes.vocabulary)},
      mean(arena.take({sizes.rows})),
      rstd(arena.take({sizes.rows})),
      losses(arena.take({sizes.rows})),
      softmax(arena.take({sizes.rows, 2})) {
  if (sizes.options.dtype == DType::bf16) {
    logits.rounded = arena.take({sizes.rows, logits.width(0)}, DType::bf16);
  }
  products = arena.take({products_workspace(*this, sizes)}, DType::u8);
}

void head_logits(const Gpt2HeadSpace& space, const TensorView& wte, StreamView stream) {
  for (std::int64_t piece = 0; piece < space.logits.count(); ++piece) {
    ops::matmul(logits_product(space, wte, piece), stream);
  }
}

void head_gradients(const Gpt2HeadSpace& space,
                    const TensorView& wte,
                    const GradientTarget& wte_gradient,
                    StreamView stream) {
  for (std::int64_t piece = 0; piece < space.logits.count(); ++piece) {
    ops::matmul(wte_product(space, wte_gradient, piece), stream);
    ops::matmul(normed_product(space, wte, piece), stream);
  }
  ops::convert(space.normed_gradient, space.normed, stream);
}

}  // namespace dstrain::model
