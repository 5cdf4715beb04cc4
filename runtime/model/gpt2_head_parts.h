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
  DType dtype;              ///< of weights and activations
};

/// What a chunk of rows needs, cut from the workspace. The vocabulary is cut into pieces, so that
/// the packed part of wte.weight that a product reads stays small.
struct Gpt2HeadSpace {
  Gpt2HeadSpace(Arena& arena, const Gpt2HeadSizes& sizes);
  TensorView normed;        ///< (R, C); in backward its gradient follows
  TensorView gradient;      ///< (R, C) f32: sum over the pieces of the gradient of `normed`
  ops::LogitPieces logits;  ///< (R, V); in backward their gradient follows
  TensorView mean;          ///< (R) f32
  TensorView rstd;          ///< (R) f32
  TensorView losses;        ///< (R) f32
  std::span<std::byte> products;
};

/// space.logits = space.normed wte', for wte (V, C).
void head_logits(const Gpt2HeadSpace& space,
                 const TensorView& wte,
                 ops::Matmuls& matmuls,
                 StreamView stream);

/// target (V, C) f32 = (gradient of the logits)' space.normed, or added to it.
void head_wte_gradient(const Gpt2HeadSpace& space,
                       const GradientTarget& target,
                       ops::Matmuls& matmuls,
                       StreamView stream);

/// space.normed = (gradient of the logits) wte.
void head_normed_gradient(const Gpt2HeadSpace& space,
                          const TensorView& wte,
                          ops::Matmuls& matmuls,
                          StreamView stream);

}  // namespace dstrain::model
