#include "zero/sub_group_updates.h"

#include <algorithm>

#include "runtime/ops/convert.h"
#include "runtime/ops/round_stochastic.h"
#include "zero/parameter_spans.h"

namespace dstrain::zero {
namespace {

/// Elements that are widened at once: enough for all threads, and few enough to stay in a cache.
constexpr std::int64_t chunk_numel = 262'144;

/// How many arrays of a sub-group are kept in 16 bits.
std::int64_t halves(const SubGroup& sub_group) {
  const config::StatePrecision& precision = sub_group.precision;
  return (is_half(precision.optimizer_states) ? sub_group.states : 0) +
         (is_half(precision.masters) ? 1 : 0) + (is_half(precision.gradients) ? 1 : 0);
}

std::vector<optim::ParameterSpan> spans_of(const SubGroup& sub_group,
                                           const SubGroupUpdates::Inputs& inputs,
                                           const std::vector<std::string>& names) {
  std::vector<optim::ParameterSpan> spans = parameter_spans(inputs.shards, sub_group, names);
  for (optim::ParameterSpan& span : spans) {
    if (inputs.sums != nullptr) span.sums = inputs.sums->of(span.parameter_number, sub_group);
  }
  return spans;
}

}  // namespace

Bytes SubGroupUpdates::bytes(const ShardPlan& plan, bool by_host) {
  Bytes most = 0;
  for (const SubGroup& sub_group : plan.sub_groups) {
    if (sub_group.states == 0 || (sub_group.tier != MemoryTier::device) != by_host) continue;
    most = std::max(most, halves(sub_group) * std::min(chunk_numel, sub_group.numel));
  }
  return most * size_of(DType::f32);
}

SubGroupUpdates::SubGroupUpdates(const Inputs& inputs, StreamView stream)
    : shards_(inputs.shards),
      groups_(inputs.groups),
      device_(bytes(inputs.shards.plan(), false), inputs.device, stream),
      host_(bytes(inputs.shards.plan(), true), inputs.host, stream) {
  const std::vector<std::string> names = parameter_names(shards_.layout());
  for (const SubGroup& sub_group : shards_.plan().sub_groups) {
    const bool needed = sub_group.states > 0 && (inputs.sums != nullptr || halves(sub_group) > 0);
    spans_.push_back(needed ? spans_of(sub_group, inputs, names)
                            : std::vector<optim::ParameterSpan>());
  }
}

optim::ParameterGroupId SubGroupUpdates::parameter_group(SubGroupId sub_group) const {
  return shards_.layout().segment(shards_.plan().sub_groups[sub_group].segment).parameter_group;
}

/// Some elements of a sub-group as optimizers see them.
class SubGroupUpdates::Chunk {
 public:
  /// `spans`: of the sub-group.
  Chunk(const RankShards::SubGroupLease& lease,
        std::int64_t begin,
        std::int64_t numel,
        const TensorView& workspace,
        std::span<const optim::ParameterSpan> spans)
      : lease_(lease), begin_(begin), numel_(numel), workspace_(workspace) {
    parameters_ = widened(lease.exact);
    gradients_ = widened(lease.gradients);
    for (const TensorView& state : lease.states) states_.push_back(widened(state));
    for (const optim::ParameterSpan& span : spans) {
      const std::int64_t first = std::max(span.offset, begin_);
      const std::int64_t last = std::min(span.offset + span.numel, begin_ + numel_);
      if (first >= last) continue;
      optim::ParameterSpan& own = spans_.emplace_back(span);
      own.begin += first - span.offset;
      own.offset = first - begin_;
      own.numel = last - first;
    }
  }
  [[nodiscard]] optim::OptimizerShard shard() const {
    return {.parameters = parameters_, .gradients = gradients_, .states = states_, .spans = spans_};
  }
  void round_states(const optim::StepTensors& step) const {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      round(states_[i], lease_.states[i], i + 1, step);
    }
  }
  void round_parameters(const optim::StepTensors& step) const {
    round(parameters_, lease_.exact, 0, step);
  }
  [[nodiscard]] TensorView of(const TensorView& kept) const { return kept.part(begin_, {numel_}); }

 private:
  TensorView widened(const TensorView& kept) {
    if (kept.empty()) return kept;
    if (!is_half(kept.dtype())) return of(kept);
    const TensorView wide = workspace_.cut(used_, DType::f32, {numel_});
    used_ += wide.bytes();
    ops::convert(of(kept), wide, lease_.stream);
    return wide;
  }
  /// `tensor`: its number among those of a parameter.
  void round(const TensorView& values,
             const TensorView& kept,
             std::size_t tensor,
             const optim::StepTensors& step) const {
    if (!is_half(kept.dtype())) return;
    const auto tensors = static_cast<std::uint32_t>(states_.size() + 1);
    for (const optim::ParameterSpan& span : spans_) {
      const auto parameter = static_cast<std::uint32_t>(span.parameter_number);
      ops::round_stochastic({.source = values.part(span.offset, {span.numel}),
                             .target = of(kept).part(span.offset, {span.numel}),
                             .key = step.rounding,
                             .stream = parameter * tensors + static_cast<std::uint32_t>(tensor),
                             .first = span.begin},
                            lease_.stream);
    }
  }

  const RankShards::SubGroupLease& lease_;
  std::int64_t begin_;
  std::int64_t numel_;
  TensorView workspace_;
  Bytes used_ = 0;
  TensorView parameters_;
  TensorView gradients_;
  std::vector<TensorView> states_;
  std::vector<optim::ParameterSpan> spans_;
};

template <class Pass>
void SubGroupUpdates::for_chunks(SubGroupId id,
                                 const RankShards::SubGroupLease& lease,
                                 const Pass& pass) const {
  const SubGroup& sub_group = shards_.plan().sub_groups[id];
  const Buffer& workspace = sub_group.tier == MemoryTier::device ? device_ : host_;
  const std::int64_t most = halves(sub_group) > 0 ? chunk_numel : sub_group.numel;
  for (std::int64_t begin = 0; begin < sub_group.numel; begin += most) {
    pass(Chunk(lease, begin, std::min(most, sub_group.numel - begin), workspace.block(),
               spans_[id]));
  }
}

void SubGroupUpdates::measure(SubGroupId sub_group,
                              const RankShards::SubGroupLease& lease,
                              const optim::StepTensors& step) const {
  const optim::ParameterGroupId group = parameter_group(sub_group);
  for_chunks(sub_group, lease, [&](const Chunk& chunk) {
    groups_.optimizer(group).measure(chunk.shard(), tensors_of(step, group), lease.stream);
    chunk.round_states(step);
  });
}

void SubGroupUpdates::update(SubGroupId sub_group,
                             const RankShards::SubGroupLease& lease,
                             const optim::StepTensors& step) const {
  const optim::ParameterGroupId group = parameter_group(sub_group);
  // Rounds in the same pass if both are in one memory.
  const bool rounded = lease.exact.dtype() == DType::f32 && is_half(lease.parameters.dtype()) &&
                       lease.parameters.device() == lease.exact.device();
  for_chunks(sub_group, lease, [&](const Chunk& chunk) {
    optim::OptimizerShard shard = chunk.shard();
    if (rounded) shard.working = chunk.of(lease.parameters);
    groups_.optimizer(group).step(shard, tensors_of(step, group), lease.stream);
    chunk.round_states(step);
    chunk.round_parameters(step);
  });
  if (rounded || lease.exact.begins_with(lease.parameters)) return;
  ops::convert(lease.exact, lease.parameters, lease.stream);
}

}  // namespace dstrain::zero
