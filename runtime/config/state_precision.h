#pragma once
#include "runtime/tensor/dtype.h"

namespace dstrain::config {

/// The dtypes in which ranks store and send the training state. Units see the model's dtype.
/// Updates, and sums of two numbers, are always computed in f32.
struct StatePrecision {
  DType gradients = DType::f32;      ///< accumulated over micro steps: f32, or the model's dtype
  DType communication = DType::f32;  ///< for reducing gradients over the ranks: any if gradients
                                     ///< are f32, else f32 or their dtype
  DType masters = DType::f32;  ///< of the parameters that are updated: f32, or the model's dtype
  DType optimizer_states = DType::f32;  ///< f32, or bf16
  friend bool operator==(const StatePrecision&, const StatePrecision&) = default;
};

}  // namespace dstrain::config
