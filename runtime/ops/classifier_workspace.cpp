#include "runtime/base/error.h"
#include "runtime/ops/classifier_plan.h"

namespace dstrain::ops {
namespace {

Bytes cpu_workspace(const ClassifierSizes& sizes) {
  Arena arena;
  const ClassifierPlan plan(arena, sizes);
  return arena.used();
}

/// One pass overwrites the logits by their gradient, as in llm.c's fused_classifier.cuh; a loss per
/// row is added up in order afterwards.
Bytes cuda_workspace(const ClassifierSizes& sizes) {
  const TensorView input(sizes.dtype, {sizes.rows, sizes.channels});
  const TensorView weight(sizes.dtype, {sizes.classes, sizes.channels});
  Arena arena;
  const TensorView logits = arena.take({sizes.rows, sizes.classes}, sizes.dtype);
  arena.take({sizes.rows});
  arena.take({matmul_workspace({.a = input, .b = weight, .out = logits, .b_transposed = true},
                               DeviceKind::cuda)},
             DType::u8);
  return arena.used();
}

}  // namespace

Bytes classifier_workspace(const ClassifierSizes& sizes, DeviceKind device) {
  switch (device) {
    case DeviceKind::cpu:
      return cpu_workspace(sizes);
    case DeviceKind::cuda:
      return cuda_workspace(sizes);
  }
  fail(ErrorCode::internal, "no such kind of device");
}

}  // namespace dstrain::ops
