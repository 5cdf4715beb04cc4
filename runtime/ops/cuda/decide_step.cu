#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/square_digits.h"
#include "runtime/ops/step_total.h"

namespace dstrain::ops::gpu {
namespace {

struct Decide {
  const StepTotal* totals;
  std::int64_t ranks;
  const double* labels;
  const double* loss_scale;
  StepDecision* decision;
  double norm_max;
};

/// One block.
DSTRAIN_KERNEL(square_threads)
decide_kernel(DSTRAIN_ARGUMENT Decide args) {
  struct Shared {
    StepTotal own;
    StepTotal sum;
  };
  auto& s = shared<Shared>();
  if (thread() == 0) s.sum = StepTotal();
  for (std::int64_t rank = 0; rank < args.ranks; ++rank) {
    copy_words(args.totals[rank], s.own);
    sync();
    if (thread() == 0) s.sum.add(s.own);
    sync();
  }
  if (thread() != 0) return;
  const double norm = sqrt(s.sum.squares.value_by(Ldexp{}));
  *args.decision = decision_of({.loss_sum = s.sum.loss,
                                .labels = *args.labels,
                                .norm = norm,
                                .loss_scale = *args.loss_scale},
                               args.norm_max);
}

}  // namespace

void decide_step(const DecideStepArgs& args, StreamView stream) {
  launch("decide_step", decide_kernel,
         {.threads = square_threads, .shared_bytes = 2 * sizeof(StepTotal)},
         Decide{elements<StepTotal>(args.totals), args.totals.shape()[0],
                elements<double>(args.labels), elements<double>(args.loss_scale),
                elements<StepDecision>(args.decision), args.norm_max},
         stream);
}

}  // namespace dstrain::ops::gpu
