#pragma once
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

struct ActivationArgs;
struct ActivationBackwardArgs;
struct AddSquaresArgs;
struct AppendCacheArgs;
struct AttentionArgs;
struct AttentionBackwardArgs;
struct CachedAttentionArgs;
struct ClassifierLogitsArgs;
struct ClassifierLossArgs;
struct CopyFiniteArgs;
struct DecideStepArgs;
struct DropoutArgs;
struct EmbeddingArgs;
struct EmbeddingBackwardArgs;
struct LayerNormArgs;
struct LayerNormBackwardArgs;
struct MatmulActivationArgs;
struct MatmulActivationBackwardArgs;
struct MatmulArgs;
struct MeanLossArgs;
struct ResidualNormArgs;
struct ResidualNormBackwardArgs;
struct RoundStochasticArgs;
struct UpdateArgs;
struct WeightGradientArgs;

/// Lists the ops: DSTRAIN_OP(name, types of the arguments...) for each; the stream is last. The
/// tables and declarations of every kind of device follow from it.
#define DSTRAIN_FOR_EACH_OP(DSTRAIN_OP)                                       \
  DSTRAIN_OP(activation_backward, const ActivationBackwardArgs&)              \
  DSTRAIN_OP(activation_forward, const ActivationArgs&)                       \
  DSTRAIN_OP(add, const TensorView&, const TensorView&)                       \
  DSTRAIN_OP(add_squares, const AddSquaresArgs&)                              \
  DSTRAIN_OP(append_cache, const AppendCacheArgs&)                            \
  DSTRAIN_OP(attention_backward, const AttentionBackwardArgs&)                \
  DSTRAIN_OP(attention_forward, const AttentionArgs&)                         \
  DSTRAIN_OP(cached_attention, const CachedAttentionArgs&)                    \
  DSTRAIN_OP(classifier_logits, const ClassifierLogitsArgs&)                  \
  DSTRAIN_OP(classifier_loss, const ClassifierLossArgs&)                      \
  DSTRAIN_OP(convert, const TensorView&, const TensorView&)                   \
  DSTRAIN_OP(copy_finite, const CopyFiniteArgs&)                              \
  DSTRAIN_OP(copy_rows, const TensorView&, const TensorView&)                 \
  DSTRAIN_OP(decide_step, const DecideStepArgs&)                              \
  DSTRAIN_OP(dropout, const DropoutArgs&)                                     \
  DSTRAIN_OP(embedding_backward, const EmbeddingBackwardArgs&)                \
  DSTRAIN_OP(embedding_forward, const EmbeddingArgs&)                         \
  DSTRAIN_OP(fill_zero, const TensorView&)                                    \
  DSTRAIN_OP(layer_norm_backward, const LayerNormBackwardArgs&)               \
  DSTRAIN_OP(layer_norm_forward, const LayerNormArgs&)                        \
  DSTRAIN_OP(layer_norm_recompute, const LayerNormArgs&)                      \
  DSTRAIN_OP(matmul, const MatmulArgs&)                                       \
  DSTRAIN_OP(matmul_activation_backward, const MatmulActivationBackwardArgs&) \
  DSTRAIN_OP(matmul_activation_forward, const MatmulActivationArgs&)          \
  DSTRAIN_OP(mean_loss, const MeanLossArgs&)                                  \
  DSTRAIN_OP(measure_update, const UpdateArgs&)                               \
  DSTRAIN_OP(residual_norm_backward, const ResidualNormBackwardArgs&)         \
  DSTRAIN_OP(residual_norm_forward, const ResidualNormArgs&)                  \
  DSTRAIN_OP(round_stochastic, const RoundStochasticArgs&)                    \
  DSTRAIN_OP(scale, const TensorView&, float, const TensorView&)              \
  DSTRAIN_OP(update, const UpdateArgs&)                                       \
  DSTRAIN_OP(weight_gradient, const WeightGradientArgs&)

#define DSTRAIN_OP_ENTRY(name, ...) void (*name)(__VA_ARGS__, StreamView stream);
#define DSTRAIN_OP_DECLARATION(name, ...) void name(__VA_ARGS__, StreamView stream);

/// The ops of one kind of device, each under its common name. An entry receives checked arguments
/// and launches on the stream, which is of its device. Entries are what the best device does in one
/// pass; a backend that cannot composes them from smaller ops, as the CPU does.
struct OpTable {
  DSTRAIN_FOR_EACH_OP(DSTRAIN_OP_ENTRY)
};

/// Returns the table of `stream`'s device. Throws Error{internal} if there is none.
const OpTable& op_table(StreamView stream);

/// Registers the table of a backend when it is opened, before it has streams. `table` must outlive
/// all work.
void set_op_table(DeviceKind kind, const OpTable& table);

/// Returns the CPU's table.
const OpTable& cpu_op_table();

}  // namespace dstrain::ops
