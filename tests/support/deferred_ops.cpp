#include "tests/support/deferred_ops.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>
#include <tuple>

#include "runtime/ops/attention.h"
#include "runtime/ops/cached_attention.h"
#include "runtime/ops/classifier.h"
#include "runtime/ops/copy_finite.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/embedding.h"
#include "runtime/ops/matmul_activation.h"
#include "runtime/ops/mean_loss.h"
#include "runtime/ops/op_table.h"
#include "runtime/ops/residual_norm.h"
#include "runtime/ops/round_stochastic.h"
#include "runtime/ops/square_sum.h"
#include "runtime/ops/update.h"
#include "runtime/ops/weight_gradient.h"
#include "runtime/tensor/buffer.h"
#include "tests/support/deferred_device.h"

namespace dstrain::test {
namespace {

using namespace ops;
/// Name of the member of OpTable, as compilers spell it.
template <auto entry>
constexpr std::string_view name_of() {
  const std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::string_view table = "OpTable::";
  const std::string_view name = text.substr(text.find(table) + table.size());
  return name.substr(0, name.find_first_of("];"));
}

/// Copies may have the host on one side.
template <auto entry>
constexpr bool may_touch_host() {
  constexpr std::array<std::string_view, 4> copies{"classifier_logits", "convert", "copy_finite",
                                                   "copy_rows"};
  return std::ranges::find(copies, name_of<entry>()) != copies.end();
}

template <auto entry>
void translate(TensorView& view, StreamView stream) {
  if (may_touch_host<entry>() && view.device().kind == DeviceKind::cpu) return;
  view = DeferredDevice::translated(view, stream);
}
template <auto entry>
void translate(float /*number*/, StreamView /*stream*/) {}
template <auto entry, class Args>
void translate(Args& args, StreamView stream) {
  args.for_each_tensor([stream](TensorView& view) { translate<entry>(view, stream); });
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
void provide(CachedAttentionArgs& a, LibraryMemory& memory) {
  memory.provide(a.workspace, cached_attention_workspace(a.sizes, a.rule, DeviceKind::cpu));
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

/// Launches the CPU's `entry` on the tensors behind those of the arguments.
template <auto entry, class... Args>
void defer(Args... given, StreamView stream) {
  std::tuple<std::remove_cvref_t<Args>...> args(given...);
  std::apply([stream](auto&... each) { (translate<entry>(each, stream), ...); }, args);
  DeferredDevice::launch(stream, note_call<entry>(), [args](CpuStream& here) mutable {
    LibraryMemory memory(here);
    std::apply(
        [&](auto&... each) {
          (provide(each, memory), ...);
          (cpu_op_table().*entry)(each..., here);
        },
        args);
  });
}

}  // namespace

std::set<std::string_view> called_deferred_ops() {
  const std::lock_guard lock(called().mutex);
  return called().names;
}

const OpTable& deferred_op_table() {
#define DSTRAIN_DEFERRED_ENTRY(name, ...) .name = defer<&OpTable::name, __VA_ARGS__>,
  static constexpr OpTable table{DSTRAIN_FOR_EACH_OP(DSTRAIN_DEFERRED_ENTRY)};
#undef DSTRAIN_DEFERRED_ENTRY
  return table;
}

}  // namespace dstrain::test
