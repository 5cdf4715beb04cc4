#pragma once
#include "runtime/tensor/dtype.h"

namespace dstrain::config {

/// The dtypes in which ranks keep and send what they train with. Units see the model's dtype, and
/// whatever this is, an update and the sum of two numbers are computed in f32.
struct StatePrecision {
  DType gradients = DType::f32;         ///< summed over micro steps: f32, or the model's dtype
  DType communication = DType::f32;     ///< of gradients while they are summed over the ranks: any
                                        ///< where they are f32, else f32 or theirs
  DType masters = DType::f32;           ///< of what is updated: f32, or the model's dtype
  DType optimizer_states = DType::f32;  ///< f32, or bf16
  friend bool operator==(const StatePrecision&, const StatePrecision&) = default;
};

}  // namespace dstrain::config
