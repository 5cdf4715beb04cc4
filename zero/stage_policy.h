#pragma once
#include <array>
#include <cstddef>

namespace dstrain::zero {

/// The tensors that a ZeRO stage shards over the ranks (Rajbhandari et al., SC'20). A rank holds,
/// of psi parameters with Adam on N ranks, in bytes:
///
///   stage   fp32                    bf16
///   0       16 psi                  18 psi
///   1       8 psi + 8 psi / N       6 psi + 12 psi / N
///   2       4 psi + 12 psi / N      2 psi + 16 psi / N
///   3       16 psi / N              18 psi / N
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
