#pragma once
#include <cstdint>

#include "runtime/base/exact_sum.h"
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// What a LAMB update of a step needs besides its ranges, see lamb_scalars(): the elements, all
/// f32, of a tensor.
struct LambScalars {
  float decay = 0;
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float eps = 0;          ///< added to the root of the second moment
  float eps_in_root = 0;  ///< added to the second moment itself
  float step_size = 0;    ///< lr sqrt(1 - beta2^step) / (1 - beta1^step)
  float ratio_least = 0;  ///< of the trust ratio
  float ratio_most = 0;
  static constexpr std::int64_t numel = 9;
};

/// The settings of a run and a step, from which lamb_scalars() computes in double precision.
struct LambSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  bool eps_in_root = false;
  double weight_decay = 0;
  bool bias_correction = true;
  double ratio_least = 0.01;
  double ratio_most = 10;
  std::int64_t step = 1;  ///< counts from 1
};

/// Each value is computed in double and rounded once to float.
LambScalars lamb_scalars(const LambSettings& settings);

/// Sums of squares over a whole parameter, of its values and of its update, as digits, so that
/// ranks may add them up: an i64 tensor of this shape.
inline constexpr std::int64_t lamb_sums = 2;
inline constexpr std::int64_t lamb_sum_numel = 2 * ExactSum::numel;

/// Of one parameter what lies here: flat ranges of equal numel, f32, and what the step gives.
struct LambMeasureArgs {
  TensorView parameters;
  TensorView gradients;
  TensorView exp_avg;
  TensorView exp_avg_sq;
  TensorView scalars;     ///< (LambScalars::numel) f32
  TensorView sums;        ///< (lamb_sums, lamb_sum_numel) i64, of the parameter: added to
  TensorView decision{};  ///< (StepDecision::numel) f64; empty: taken, with gradients as they are
};

/// Likewise; f32 but for `working`.
struct LambUpdateArgs {
  TensorView parameters;
  TensorView exp_avg;
  TensorView exp_avg_sq;
  TensorView scalars;
  TensorView sums;  ///< of all that there is of the parameter
  TensorView decision{};
  TensorView working{};  ///< bf16 or f16: receives the new parameters, rounded; empty: not wanted
};

/// One step of LAMB (You et al. 2020, arXiv 1904.00962) as DeepSpeed's FusedLamb has it, in two
/// passes over a parameter, between which `sums` are completed; nothing changes when the decision
/// is not to take it, but that the working copy is that of the parameters. lamb_measure():
///   g = gradient_scale g;  m = m + (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g g;
///   u = m / (sqrt(v + eps_in_root) + eps) + decay p;  sums += (p p, u u)
/// lamb_update(), which computes u again:
///   ratio = |p| / |u|, between ratio_least and ratio_most; 1 where one of the norms is 0
///   p = p - step_size ratio u
/// Moments are corrected for their start by step_size alone, which so scales the decay as well.
/// Squares are added as add_squares() does, and additions to m, v, u and p are fused: the bits do
/// not depend on how a parameter is cut at multiples of 64, on threads or on the instruction set.
/// Reads 28 and writes 12 bytes per element; with the working copy 4 and 2 more. Asynchronous on
/// `stream`.
void lamb_measure(const LambMeasureArgs& args, StreamView stream);
void lamb_update(const LambUpdateArgs& args, StreamView stream);

}  // namespace dstrain::ops
