#include <cmath>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops {
namespace {

/// A row of the totals: one rank's.
struct StepTotal {
  ExactSum squares;
  double loss = 0;
};
static_assert(sizeof(StepTotal) == step_total_numel * sizeof(std::int64_t));
static_assert(sizeof(StepDecision) == StepDecision::numel * sizeof(double));

StepDecision decide(const DecideStepArgs& args) {
  const auto* const totals = elements<const StepTotal>(args.totals);
  StepDecision decision;
  ExactSum squares;
  for (std::int64_t rank = 0; rank < args.totals.shape()[0]; ++rank) {
    squares.add(totals[rank].squares);
    decision.loss += totals[rank].loss;
  }
  decision.loss /= *elements<double>(args.labels);
  const double loss_scale = *elements<double>(args.loss_scale);
  decision.gradient_norm = std::sqrt(squares.value()) / loss_scale;
  const bool finite = std::isfinite(decision.loss) && std::isfinite(decision.gradient_norm);
  decision.taken = finite ? 1 : 0;
  decision.gradient_scale = clip_scale(decision.gradient_norm, args.norm_max) / loss_scale;
  return decision;
}

}  // namespace

namespace cpu {

void decide_step(const DecideStepArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] { *elements<StepDecision>(args.decision) = decide(args); });
}

}  // namespace cpu
}  // namespace dstrain::ops
