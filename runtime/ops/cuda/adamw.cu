#include "runtime/ops/adamw_update.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/decision.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {
namespace {

/// Half is the type of the working copy; float where there is none.
template <class Half>
struct Update {
  float* parameters;
  const float* gradients;
  float* exp_avg;
  float* exp_avg_sq;
  const AdamWScalars* scalars;
  const StepDecision* decision;  ///< or null
  Half* working;                 ///< or null
  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    float parameter = parameters[i];
    if (is_taken(decision)) {
      const AdamWElement to = adamw_update({parameter, exp_avg[i], exp_avg_sq[i]}, gradients[i],
                                           gradient_scale(decision), *scalars);
      parameters[i] = to.p;
      exp_avg[i] = to.m;
      exp_avg_sq[i] = to.v;
      parameter = to.p;
    }
    if (working != nullptr) working[i] = from_float<Half>(parameter);
  }
};

}  // namespace

void adamw(const AdamWArgs& args, StreamView stream) {
  with_element_type(args.working.empty() ? DType::f32 : args.working.dtype(), [&](auto element) {
    using Half = decltype(element);
    for_elements("adamw", args.parameters.numel(),
                 Update<Half>{floats(args.parameters), floats(args.gradients), floats(args.exp_avg),
                              floats(args.exp_avg_sq), elements<AdamWScalars>(args.scalars),
                              elements<StepDecision>(args.decision), elements<Half>(args.working)},
                 stream);
  });
}

}  // namespace dstrain::ops::gpu
