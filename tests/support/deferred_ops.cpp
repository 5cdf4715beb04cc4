#include "tests/support/deferred_ops.h"

#include <initializer_list>
#include <mutex>
#include <string_view>
#include <tuple>

#include "runtime/ops/adamw.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/classifier.h"
#include "runtime/ops/copy_finite.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/embedding.h"
#include "runtime/ops/lamb.h"
#include "runtime/ops/matmul_activation.h"
#include "runtime/ops/op_table.h"
#include "runtime/ops/residual_norm.h"
#include "runtime/ops/round_stochastic.h"
#include "runtime/ops/weight_gradient.h"
#include "runtime/tensor/buffer.h"
#include "tests/support/deferred_device.h"

namespace dstrain::test {
namespace {

using namespace ops;
using Views = std::initializer_list<TensorView*>;

/// Of what copies: it may have the host on one side.
TensorView of_either(const TensorView& view, StreamView stream) {
  return view.device().kind == DeviceKind::cpu ? view : DeferredDevice::translated(view, stream);
}

// The tensors of each kind of arguments.

void translate(Views views, StreamView stream) {
  for (TensorView* const view : views) *view = DeferredDevice::translated(*view, stream);
}
void translate(TensorView& view, StreamView stream) {
  translate({&view}, stream);
}
void translate(ActivationArgs& a, StreamView stream) {
  translate({&a.input, &a.factor, &a.output}, stream);
}
void translate(ActivationBackwardArgs& a, StreamView stream) {
  translate(
      {&a.input, &a.factor, &a.output_gradient, &a.input_gradient, &a.factor_gradient, &a.output},
      stream);
}
void translate(AdamWArgs& a, StreamView stream) {
  translate(
      {&a.parameters, &a.gradients, &a.exp_avg, &a.exp_avg_sq, &a.scalars, &a.decision, &a.working},
      stream);
}
void translate(AttentionArgs& a, StreamView stream) {
  translate({&a.query, &a.key, &a.value, &a.key_count, &a.first_key, &a.bias, &a.output,
             &a.logsumexp, &a.workspace, &a.dropout.counter},
            stream);
}
void translate(AttentionBackwardArgs& a, StreamView stream) {
  translate({&a.query, &a.key, &a.value, &a.key_count, &a.first_key, &a.bias, &a.output,
             &a.logsumexp, &a.output_gradient, &a.query_gradient, &a.key_gradient,
             &a.value_gradient, &a.bias_gradient, &a.workspace, &a.dropout.counter},
            stream);
}
void translate(ClassifierLogitsArgs& a, StreamView stream) {
  translate({&a.input, &a.weight, &a.workspace}, stream);
  a.logits = of_either(a.logits, stream);
}
void translate(ClassifierLossArgs& a, StreamView stream) {
  translate({&a.input, &a.weight, &a.labels, &a.loss_sum, &a.label_weight, &a.input_gradient,
             &a.weight_gradient, &a.workspace},
            stream);
}
void translate(CopyFiniteArgs& a, StreamView stream) {
  translate(a.source, stream);
  for (TensorView* const view : {&a.target, &a.not_finite}) *view = of_either(*view, stream);
}
void translate(DecideStepArgs& a, StreamView stream) {
  translate({&a.totals, &a.labels, &a.loss_scale, &a.decision}, stream);
}
void translate(DropoutArgs& a, StreamView stream) {
  translate({&a.input, &a.residual, &a.output, &a.site.counter}, stream);
}
void translate(EmbeddingArgs& a, StreamView stream) {
  translate({&a.tokens, &a.first_position, &a.token_table, &a.position_table, &a.output}, stream);
}
void translate(EmbeddingBackwardArgs& a, StreamView stream) {
  translate(
      {&a.tokens, &a.first_position, &a.output_gradient, &a.token_gradient, &a.position_gradient},
      stream);
}
void translate(LambMeasureArgs& a, StreamView stream) {
  translate(
      {&a.parameters, &a.gradients, &a.exp_avg, &a.exp_avg_sq, &a.scalars, &a.sums, &a.decision},
      stream);
}
void translate(LambUpdateArgs& a, StreamView stream) {
  translate(
      {&a.parameters, &a.exp_avg, &a.exp_avg_sq, &a.scalars, &a.sums, &a.decision, &a.working},
      stream);
}
void translate(LayerNormArgs& a, StreamView stream) {
  translate({&a.input, &a.weight, &a.bias, &a.mean, &a.rstd, &a.output}, stream);
}
void translate(LayerNormBackwardArgs& a, StreamView stream) {
  translate({&a.input, &a.weight, &a.mean, &a.rstd, &a.output_gradient, &a.residual,
             &a.input_gradient, &a.weight_gradient, &a.bias_gradient},
            stream);
}
void translate(MatmulArgs& a, StreamView stream) {
  translate({&a.a, &a.b, &a.out, &a.bias, &a.workspace}, stream);
}
void translate(MatmulActivationArgs& a, StreamView stream) {
  translate(a.product, stream);
  translate(a.active, stream);
}
void translate(MatmulActivationBackwardArgs& a, StreamView stream) {
  translate(a.product, stream);
  translate({&a.input, &a.active}, stream);
}
void translate(ResidualNormArgs& a, StreamView stream) {
  translate(a.join, stream);
  translate(a.norm, stream);
}
void translate(ResidualNormBackwardArgs& a, StreamView stream) {
  translate(a.norm, stream);
  translate({&a.branch_gradient, &a.site.counter}, stream);
}
void translate(RoundStochasticArgs& a, StreamView stream) {
  translate({&a.source, &a.target, &a.key}, stream);
}
void translate(WeightGradientArgs& a, StreamView stream) {
  translate(a.product, stream);
  translate(a.bias_gradient, stream);
}

/// What the CPU's kernels need beyond the workspace of this kind of device: the device's own, as
/// that of a library, for one call.
class LibraryMemory {
 public:
  explicit LibraryMemory(CpuStream& here) : here_(here) {}
  /// Another kernel would have written what is given, so it is spoiled.
  void provide(TensorView& workspace, Bytes needed) {
    if (workspace.bytes() >= needed) return;
    if (!workspace.empty()) cpu_op_table().fill_zero(workspace, here_);
    own_ = HostBuffer(needed, memory_, here_);
    workspace = own_.block();
  }

 private:
  StreamView here_;
  HostMemory memory_;
  HostBuffer own_;
};

// For each kind of arguments that has a workspace.

template <class Args>
void provide(const Args& /*args*/, LibraryMemory& /*memory*/) {}
void provide(AttentionArgs& a, LibraryMemory& memory) {
  memory.provide(a.workspace, attention_forward_workspace(a.sizes, a.rule, DeviceKind::cpu));
}
void provide(AttentionBackwardArgs& a, LibraryMemory& memory) {
  memory.provide(a.workspace, attention_backward_workspace(a.sizes, a.rule, DeviceKind::cpu));
}
/// The two of a classifier.
template <class Args>
requires requires(Args a) {
  a.input;
  a.weight;
  a.workspace;
}
void provide(Args& a, LibraryMemory& memory) {
  const ClassifierSizes sizes{.rows = a.input.shape()[0],
                              .channels = a.input.shape()[1],
                              .classes = a.weight.shape()[0],
                              .dtype = a.input.dtype()};
  memory.provide(a.workspace, classifier_workspace(sizes, DeviceKind::cpu));
}
void provide(MatmulArgs& a, LibraryMemory& memory) {
  memory.provide(a.workspace, matmul_workspace(a, DeviceKind::cpu));
}
/// The three that have a product in them.
template <class Args>
requires requires(Args a) {
  a.product;
}
void provide(Args& a, LibraryMemory& memory) {
  provide(a.product, memory);
}

/// That of the member of OpTable, as compilers spell it.
template <auto entry>
constexpr std::string_view name_of() {
  const std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::string_view table = "OpTable::";
  const std::string_view name = text.substr(text.find(table) + table.size());
  return name.substr(0, name.find_first_of("];"));
}

struct Called {
  std::mutex mutex;
  std::set<std::string_view> names;
};
Called& called() {
  static Called all;
  return all;
}

/// Its name.
template <auto entry>
std::string_view note_call() {
  const std::lock_guard lock(called().mutex);
  return *called().names.insert(name_of<entry>()).first;
}

/// Launches the CPU's `entry` on the tensors behind those of `args`.
template <auto entry, class... Args>
void defer(StreamView stream, Args... args) {
  (translate(args, stream), ...);
  DeferredDevice::launch(stream, note_call<entry>(), [args...](CpuStream& here) mutable {
    LibraryMemory memory(here);
    (provide(args, memory), ...);
    (cpu_op_table().*entry)(args..., here);
  });
}

template <auto entry>
void defer_copy(const TensorView& source, const TensorView& target, StreamView stream) {
  DeferredDevice::launch(stream, note_call<entry>(),
                         [from = of_either(source, stream), to = of_either(target, stream)](
                             CpuStream& here) { (cpu_op_table().*entry)(from, to, here); });
}

void defer_scale(const TensorView& input,
                 float factor,
                 const TensorView& output,
                 StreamView stream) {
  const TensorView from = DeferredDevice::translated(input, stream);
  const TensorView to = DeferredDevice::translated(output, stream);
  DeferredDevice::launch(stream, note_call<&OpTable::scale>(), [from, factor, to](CpuStream& here) {
    cpu_op_table().scale(from, factor, to, here);
  });
}

/// Entries of one and two arguments.
template <auto entry, class A>
void one(const A& a, StreamView stream) {
  defer<entry>(stream, a);
}
template <auto entry, class A, class B>
void two(const A& a, const B& b, StreamView stream) {
  defer<entry>(stream, a, b);
}

}  // namespace

std::set<std::string_view> called_deferred_ops() {
  const std::lock_guard lock(called().mutex);
  return called().names;
}

const OpTable& deferred_op_table() {
  using T = OpTable;
  static constexpr OpTable table{.activation_backward = one<&T::activation_backward>,
                                 .activation_forward = one<&T::activation_forward>,
                                 .adamw = one<&T::adamw>,
                                 .add = two<&T::add>,
                                 .add_squares = two<&T::add_squares>,
                                 .attention_backward = one<&T::attention_backward>,
                                 .attention_forward = one<&T::attention_forward>,
                                 .classifier_logits = one<&T::classifier_logits>,
                                 .classifier_loss = one<&T::classifier_loss>,
                                 .convert = defer_copy<&T::convert>,
                                 .copy_finite = one<&T::copy_finite>,
                                 .copy_rows = defer_copy<&T::copy_rows>,
                                 .decide_step = one<&T::decide_step>,
                                 .dropout = one<&T::dropout>,
                                 .embedding_backward = one<&T::embedding_backward>,
                                 .embedding_forward = one<&T::embedding_forward>,
                                 .fill_zero = one<&T::fill_zero>,
                                 .lamb_measure = one<&T::lamb_measure>,
                                 .lamb_update = one<&T::lamb_update>,
                                 .layer_norm_backward = one<&T::layer_norm_backward>,
                                 .layer_norm_forward = one<&T::layer_norm_forward>,
                                 .layer_norm_recompute = one<&T::layer_norm_recompute>,
                                 .matmul = one<&T::matmul>,
                                 .matmul_activation_backward = one<&T::matmul_activation_backward>,
                                 .matmul_activation_forward = one<&T::matmul_activation_forward>,
                                 .residual_norm_backward = one<&T::residual_norm_backward>,
                                 .residual_norm_forward = one<&T::residual_norm_forward>,
                                 .round_stochastic = one<&T::round_stochastic>,
                                 .scale = defer_scale,
                                 .weight_gradient = one<&T::weight_gradient>};
  return table;
}

}  // namespace dstrain::test
