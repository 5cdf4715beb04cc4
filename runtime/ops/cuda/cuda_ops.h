#pragma once
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/op_table.h"

/// The entries of GPUs, as cpu_ops.h has the CPU's.
namespace dstrain::ops::gpu {

template <auto member>
using Entry = cpu::Entry<member>;

Entry<&OpTable::activation_backward> activation_backward;
Entry<&OpTable::activation_forward> activation_forward;
Entry<&OpTable::adamw> adamw;
Entry<&OpTable::add> add;
Entry<&OpTable::add_squares> add_squares;
Entry<&OpTable::attention_backward> attention_backward;
Entry<&OpTable::attention_forward> attention_forward;
Entry<&OpTable::classifier_logits> classifier_logits;
Entry<&OpTable::classifier_loss> classifier_loss;
Entry<&OpTable::convert> convert;
Entry<&OpTable::copy_finite> copy_finite;
Entry<&OpTable::copy_rows> copy_rows;
Entry<&OpTable::decide_step> decide_step;
Entry<&OpTable::dropout> dropout;
Entry<&OpTable::embedding_backward> embedding_backward;
Entry<&OpTable::embedding_forward> embedding_forward;
Entry<&OpTable::fill_zero> fill_zero;
Entry<&OpTable::lamb_measure> lamb_measure;
Entry<&OpTable::lamb_update> lamb_update;
Entry<&OpTable::layer_norm_backward> layer_norm_backward;
Entry<&OpTable::layer_norm_forward> layer_norm_forward;
Entry<&OpTable::layer_norm_recompute> layer_norm_recompute;
Entry<&OpTable::matmul> matmul;
Entry<&OpTable::matmul_activation_backward> matmul_activation_backward;
Entry<&OpTable::matmul_activation_forward> matmul_activation_forward;
Entry<&OpTable::residual_norm_backward> residual_norm_backward;
Entry<&OpTable::residual_norm_forward> residual_norm_forward;
Entry<&OpTable::round_stochastic> round_stochastic;
Entry<&OpTable::scale> scale;
Entry<&OpTable::weight_gradient> weight_gradient;

/// Whether the build has kernels for the GPU of the calling thread.
bool has_kernel_code();

}  // namespace dstrain::ops::gpu

namespace dstrain::ops {

const OpTable& cuda_op_table();

}  // namespace dstrain::ops
