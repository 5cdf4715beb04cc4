#include "runtime/ops/cuda/cuda_ops.h"

namespace dstrain::ops {

const OpTable& cuda_op_table() {
  static constexpr OpTable table{.activation_backward = gpu::activation_backward,
                                 .activation_forward = gpu::activation_forward,
                                 .adamw = gpu::adamw,
                                 .add = gpu::add,
                                 .add_squares = gpu::add_squares,
                                 .attention_backward = gpu::attention_backward,
                                 .attention_forward = gpu::attention_forward,
                                 .classifier_logits = gpu::classifier_logits,
                                 .classifier_loss = gpu::classifier_loss,
                                 .convert = gpu::convert,
                                 .copy_finite = gpu::copy_finite,
                                 .copy_rows = gpu::copy_rows,
                                 .decide_step = gpu::decide_step,
                                 .dropout = gpu::dropout,
                                 .embedding_backward = gpu::embedding_backward,
                                 .embedding_forward = gpu::embedding_forward,
                                 .fill_zero = gpu::fill_zero,
                                 .lamb_measure = gpu::lamb_measure,
                                 .lamb_update = gpu::lamb_update,
                                 .layer_norm_backward = gpu::layer_norm_backward,
                                 .layer_norm_forward = gpu::layer_norm_forward,
                                 .layer_norm_recompute = gpu::layer_norm_recompute,
                                 .matmul = gpu::matmul,
                                 .matmul_activation_backward = gpu::matmul_activation_backward,
                                 .matmul_activation_forward = gpu::matmul_activation_forward,
                                 .residual_norm_backward = gpu::residual_norm_backward,
                                 .residual_norm_forward = gpu::residual_norm_forward,
                                 .round_stochastic = gpu::round_stochastic,
                                 .scale = gpu::scale,
                                 .weight_gradient = gpu::weight_gradient};
  return table;
}

}  // namespace dstrain::ops
