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
  static constexpr int numel = pack_numel<float, Half>;
  float* parameters;
  const float* gradients;
  float* exp_avg;
  float* exp_avg_sq;
  const AdamWScalars* scalars;
  const StepDecision* decision;  ///< or null
  Half* working;                 ///< or null
  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    auto p = load<n>(parameters, i);
    if (is_taken(decision)) {
      const auto gradient = load<n>(gradients, i);
      auto m = load<n>(exp_avg, i);
      auto v = load<n>(exp_avg_sq, i);
      const float scale = gradient_scale(decision);
#pragma unroll
      for (int j = 0; j < n; ++j) {
        const AdamWElement to =
            adamw_update({p.at[j], m.at[j], v.at[j]}, gradient.at[j], scale, *scalars);
        p.at[j] = to.p;
        m.at[j] = to.m;
        v.at[j] = to.v;
      }
      store(p, parameters, i);
      store(m, exp_avg, i);
      store(v, exp_avg_sq, i);
    }
    if (working != nullptr) store(converted<Half>(p), working, i);
  }
};

}  // namespace

void adamw(const AdamWArgs& args, StreamView stream) {
  with_element_type(args.working.empty() ? DType::f32 : args.working.dtype(), [&](auto element) {
    using Half = decltype(element);
    const Update<Half> update{floats(args.parameters),
                              floats(args.gradients),
                              floats(args.exp_avg),
                              floats(args.exp_avg_sq),
                              elements<AdamWScalars>(args.scalars),
                              elements<StepDecision>(args.decision),
                              elements<Half>(args.working)};
    const bool aligned = are_aligned(update.parameters, update.gradients, update.exp_avg,
                                     update.exp_avg_sq, update.working);
    for_packs("adamw", args.parameters.numel(), aligned, update, stream);
  });
}

}  // namespace dstrain::ops::gpu
