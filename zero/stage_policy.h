#pragma once
#include <array>
#include <cstddef>

namespace dstrain::zero {

/// What a ZeRO stage splits over the ranks (Rajbhandari et al., SC'20), and so what a rank holds
/// of psi fp32 parameters with Adam on N ranks, in bytes:
///   stage 0: 16 psi                 stage 1: 8 psi + 8 psi / N
///   stage 2: 4 psi + 12 psi / N     stage 3: 16 psi / N
struct StagePolicy {
  bool shard_optimizer;
  bool shard_gradients;
  bool shard_parameters;
};

inline constexpr std::array<StagePolicy, 4> stage_policies{
    {{false, false, false}, {true, false, false}, {true, true, false}, {true, true, true}}};

constexpr const StagePolicy& stage_policy(int stage) {
  return stage_policies.at(static_cast<std::size_t>(stage));
}

}  // namespace dstrain::zero
