#include <cmath>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/step_total.h"

namespace dstrain::ops {
namespace {

StepDecision decide(const DecideStepArgs& args) {
  const auto* const totals = elements<const StepTotal>(args.totals);
  StepTotal all;
  for (std::int64_t rank = 0; rank < args.totals.shape()[0]; ++rank) all.add(totals[rank]);
  return decision_of({.loss_sum = all.loss,
                      .labels = *elements<double>(args.labels),
                      .norm = std::sqrt(all.squares.value()),
                      .loss_scale = *elements<double>(args.loss_scale)},
                     args.norm_max);
}

}  // namespace

namespace cpu {

void decide_step(const DecideStepArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] { *elements<StepDecision>(args.decision) = decide(args); });
}

}  // namespace cpu
}  // namespace dstrain::ops
