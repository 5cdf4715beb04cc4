#pragma once
#include <cstdint>

#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// What an Adam update of a step needs besides its ranges, see adamw_scalars(): the elements, all
/// f32, of a tensor.
struct AdamWScalars {
  float l2_decay = 0;      ///< times the parameter, added to the gradient (Adam, not AdamW)
  float decay_factor = 1;  ///< 1 - lr wd of AdamW; 1 when the decay is not decoupled
  float one_minus_beta1 = 0;
  float beta2 = 0;
  float one_minus_beta2 = 0;
  float eps = 0;        ///< eps of the settings times sqrt(1 - beta2^step)
  float step_size = 0;  ///< lr sqrt(1 - beta2^step) / (1 - beta1^step)
  static constexpr std::int64_t numel = 7;
};

/// The settings of a run and a step, from which adamw_scalars() computes in double precision.
struct AdamWSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled = true;        ///< AdamW: decay the parameter; else add wd p to the gradient
  bool bias_correction = true;  ///< divide the moments by 1 - beta^step
  std::int64_t step = 1;        ///< counts from 1
};

/// Each value is computed in double, as PyTorch does, and rounded once to float.
AdamWScalars adamw_scalars(const AdamWSettings& settings);

/// Scalars in the host's memory as such a tensor.
inline HostView view_of(AdamWScalars& scalars) {
  return {&scalars, DType::f32, {AdamWScalars::numel}};
}

/// Flat ranges of equal numel, f32 but for `working`, and what the step gives.
struct AdamWArgs {
  TensorView parameters;
  TensorView gradients;
  TensorView exp_avg;
  TensorView exp_avg_sq;
  TensorView scalars;     ///< (AdamWScalars::numel) f32
  TensorView decision{};  ///< (StepDecision::numel) f64; empty: taken, with gradients as they are
  TensorView working{};   ///< bf16 or f16: receives the new parameters, rounded; empty: not wanted
};

/// One Adam or AdamW step over a flat range, elementwise, as torch.optim.AdamW; nothing changes
/// when the decision is not to take it, but that the working copy is that of the parameters:
///   g = gradient_scale g (+ l2_decay p);  p = decay_factor p;  m = m + (1 - beta1) (g - m);
///   v = beta2 v + (1 - beta2) g g;  p = p - step_size m / (sqrt(v) + eps)
/// The correction of the second moment is in step_size and eps, which saves a division per element.
/// The additions to m, v and p are fused multiply-adds, root and division correctly rounded: the
/// bits do not depend on the instruction set, on the number of threads or on how a range is cut.
/// The working copy is written in the same pass and changes no other bit. Reads 16 and writes 12
/// bytes per element, 14 with the working copy. Asynchronous on `stream`.
void adamw(const AdamWArgs& args, StreamView stream);

}  // namespace dstrain::ops
