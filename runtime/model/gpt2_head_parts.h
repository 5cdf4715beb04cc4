#pragma once
#include "runtime/model/unit.h"
#include "runtime/ops/logit_pieces.h"
#include "runtime/tensor/arena.h"

namespace dstrain::model {

/// The sizes of one chunk of rows of the head.
struct Gpt2HeadSizes {
  std::int64_t rows;        ///< R
  std::int64_t channels;    ///< C
  std::int64_t vocabulary;  ///< V
  UnitOptions options;
};

/// What a chunk of rows needs, cut from the workspace. The vocabulary is cut into pieces, so that
/// the packed part of wte.weight that a product reads stays small.
struct Gpt2HeadSpace {
  Gpt2HeadSpace(Arena& arena, const Gpt2HeadSizes& sizes);
  TensorView normed;           ///< (R, C); in backward its gradient follows
  TensorView normed_gradient;  ///< (R, C) f32: its sum over the pieces
  ops::LogitPieces logits;     ///< (R, V); their gradient, in the model's dtype, follows
  TensorView mean;             ///< (R) f32
  TensorView rstd;             ///< (R) f32
  TensorView losses;           ///< (R) f32
  TensorView softmax;          ///< (R, 2) f32
  TensorView products;         ///< u8
};

/// space.logits = space.normed wte', for wte (V, C).
void head_logits(const Gpt2HeadSpace& space, const TensorView& wte, StreamView stream);

/// From the gradient of the logits, piece by piece: wte_gradient = (gradient of the logits)'
/// space.normed (V, C) f32, or added to it; then space.normed = (gradient of the logits) wte.
void head_gradients(const Gpt2HeadSpace& space,
                    const TensorView& wte,
                    const GradientTarget& wte_gradient,
                    StreamView stream);

}  // namespace dstrain::model
