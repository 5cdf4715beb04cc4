#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

struct ActivationArgs;
struct ActivationBackwardArgs;
struct AdamWArgs;
struct AttentionArgs;
struct AttentionBackwardArgs;
struct ClassifierLogitsArgs;
struct ClassifierLossArgs;
struct CopyFiniteArgs;
struct DecideStepArgs;
struct DropoutArgs;
struct EmbeddingArgs;
struct EmbeddingBackwardArgs;
struct LambMeasureArgs;
struct LambUpdateArgs;
struct LayerNormArgs;
struct LayerNormBackwardArgs;
struct MatmulArgs;
struct MatmulActivationArgs;
struct MatmulActivationBackwardArgs;
struct ResidualNormArgs;
struct ResidualNormBackwardArgs;
struct RoundStochasticArgs;
struct WeightGradientArgs;

/// The ops of one kind of device, each under the name by which everybody calls it. An entry sees
/// arguments that were checked, and launches on the stream, which is of its device. Entries are
/// what the best device does in one pass; a backend that cannot composes them from pieces of its
/// own, as the CPU does.
struct OpTable {
  void (*activation_backward)(const ActivationBackwardArgs& args, StreamView stream);
  void (*activation_forward)(const ActivationArgs& args, StreamView stream);
  void (*adamw)(const AdamWArgs& args, StreamView stream);
  void (*add)(const TensorView& values, const TensorView& sum, StreamView stream);
  void (*add_squares)(const TensorView& values, const TensorView& sum, StreamView stream);
  void (*attention_backward)(const AttentionBackwardArgs& args, StreamView stream);
  void (*attention_forward)(const AttentionArgs& args, StreamView stream);
  void (*classifier_logits)(const ClassifierLogitsArgs& args, StreamView stream);
  void (*classifier_loss)(const ClassifierLossArgs& args, StreamView stream);
  void (*convert)(const TensorView& source, const TensorView& target, StreamView stream);
  void (*copy_finite)(const CopyFiniteArgs& args, StreamView stream);
  void (*copy_rows)(const TensorView& source, const TensorView& target, StreamView stream);
  void (*decide_step)(const DecideStepArgs& args, StreamView stream);
  void (*dropout)(const DropoutArgs& args, StreamView stream);
  void (*embedding_backward)(const EmbeddingBackwardArgs& args, StreamView stream);
  void (*embedding_forward)(const EmbeddingArgs& args, StreamView stream);
  void (*fill_zero)(const TensorView& values, StreamView stream);
  void (*lamb_measure)(const LambMeasureArgs& args, StreamView stream);
  void (*lamb_update)(const LambUpdateArgs& args, StreamView stream);
  void (*layer_norm_backward)(const LayerNormBackwardArgs& args, StreamView stream);
  void (*layer_norm_forward)(const LayerNormArgs& args, StreamView stream);
  void (*layer_norm_recompute)(const LayerNormArgs& args, StreamView stream);
  void (*matmul)(const MatmulArgs& args, StreamView stream);
  void (*matmul_activation_backward)(const MatmulActivationBackwardArgs& args, StreamView stream);
  void (*matmul_activation_forward)(const MatmulActivationArgs& args, StreamView stream);
  void (*residual_norm_backward)(const ResidualNormBackwardArgs& args, StreamView stream);
  void (*residual_norm_forward)(const ResidualNormArgs& args, StreamView stream);
  void (*round_stochastic)(const RoundStochasticArgs& args, StreamView stream);
  void (*scale)(const TensorView& input, float factor, const TensorView& output, StreamView stream);
  void (*weight_gradient)(const WeightGradientArgs& args, StreamView stream);
};

/// Those of the device that `stream` is of. Throws Error{internal} where there are none.
const OpTable& op_table(StreamView stream);

/// What a backend brings along when it is opened, before there is a stream of its kind. `table`
/// must outlive all work.
void set_op_table(DeviceKind kind, const OpTable& table);

/// Those of the CPU.
const OpTable& cpu_op_table();

}  // namespace dstrain::ops
