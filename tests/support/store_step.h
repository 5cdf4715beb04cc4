#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/engine/parameter_store.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/fill_zero.h"

namespace dstrain::test {

/// What an engine gives a store for a step, in memory of the host, for a store without an engine.
class StoreStep {
 public:
  explicit StoreStep(int ranks) : totals_(static_cast<std::size_t>(ranks) * own_.size()) {}

  /// Of a step whose gradients are to be halved.
  void begin(engine::ParameterStore& store, const optim::StepScalars& scalars) {
    const auto scalars_of_groups = store.begin_step(scalars);
    scalars_.assign(scalars_of_groups.begin(), scalars_of_groups.end());
  }
  void gather_totals(engine::ParameterStore& store, StreamView stream) {
    ops::fill_zero(own(), stream);
    store.gather_totals(own(), totals(), stream);
  }
  void update(engine::ParameterStore& store, StreamView stream) {
    constexpr std::int64_t numel = rules::scalar_numel;
    const HostView scalars(scalars_.data(), DType::f32, {std::ssize(scalars_), numel});
    store.step({scalars, ops::view_of(halved_)}, stream);
  }
  /// The L2 norm of all gradients, once `stream` has gathered the totals.
  double gradient_norm(StreamView stream) {
    double labels = 1;
    ops::StepDecision decision;
    double loss_scale = 1;
    ops::decide_step({.totals = totals(),
                      .labels = HostView(&labels, DType::f64, {1}),
                      .loss_scale = HostView(&loss_scale, DType::f64, {1}),
                      .decision = ops::view_of(decision)},
                     stream);
    stream.synchronize();
    return decision.gradient_norm;
  }

 private:
  HostView own() { return {own_.data(), DType::i64, {std::ssize(own_)}}; }
  HostView totals() {
    return {totals_.data(), DType::i64, {std::ssize(totals_) / std::ssize(own_), std::ssize(own_)}};
  }

  std::vector<rules::ScalarValues> scalars_;
  ops::StepDecision halved_{.gradient_scale = 0.5};
  std::array<std::int64_t, ops::step_total_numel> own_{};
  std::vector<std::int64_t> totals_;
};

}  // namespace dstrain::test
