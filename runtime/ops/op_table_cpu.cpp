#include "runtime/ops/cpu_ops.h"

namespace dstrain::ops {

const OpTable& cpu_op_table() {
  static constexpr OpTable table{.activation_backward = cpu::activation_backward,
                                 .activation_forward = cpu::activation_forward,
                                 .adamw = cpu::adamw,
                                 .add = cpu::add,
                                 .add_squares = cpu::add_squares,
                                 .attention_backward = cpu::attention_backward,
                                 .attention_forward = cpu::attention_forward,
                                 .classifier_logits = cpu::classifier_logits,
                                 .classifier_loss = cpu::classifier_loss,
                                 .convert = cpu::convert,
                                 .copy_finite = cpu::copy_finite,
                                 .copy_rows = cpu::copy_rows,
                                 .decide_step = cpu::decide_step,
                                 .dropout = cpu::dropout,
                                 .embedding_backward = cpu::embedding_backward,
                                 .embedding_forward = cpu::embedding_forward,
                                 .fill_zero = cpu::fill_zero,
                                 .lamb_measure = cpu::lamb_measure,
                                 .lamb_update = cpu::lamb_update,
                                 .layer_norm_backward = cpu::layer_norm_backward,
                                 .layer_norm_forward = cpu::layer_norm_forward,
                                 .layer_norm_recompute = cpu::layer_norm_recompute,
                                 .matmul = cpu::matmul,
                                 .matmul_activation_backward = cpu::matmul_activation_backward,
                                 .matmul_activation_forward = cpu::matmul_activation_forward,
                                 .residual_norm_backward = cpu::residual_norm_backward,
                                 .residual_norm_forward = cpu::residual_norm_forward,
                                 .round_stochastic = cpu::round_stochastic,
                                 .scale = cpu::scale,
                                 .weight_gradient = cpu::weight_gradient};
  return table;
}

}  // namespace dstrain::ops
