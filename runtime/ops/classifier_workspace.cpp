#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/ops/classifier_chunks.h"
#include "runtime/ops/classifier_plan.h"

namespace dstrain::ops {
namespace {

Bytes cpu_workspace(const ClassifierSizes& sizes) {
  Arena arena;
  const ClassifierPlan plan(arena, sizes);
  return arena.used();
}

Bytes cuda_workspace(const ClassifierSizes& sizes) {
  Bytes most = 0;
  for (const auto purpose : {ClassifierChunks::Purpose::loss, ClassifierChunks::Purpose::logits}) {
    Arena arena;
    const ClassifierChunks chunks(arena, sizes, purpose);
    most = std::max(most, arena.used());
  }
  return most;
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
