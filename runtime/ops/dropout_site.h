#pragma once
#include <cstdint>

#include "runtime/numeric/philox.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// One place of the model that drops, in one step: what a mask depends on besides the sample and
/// the element. The same place gives the same mask in forward, in recompute and in backward.
struct DropoutSite {
  float rate = 0;  ///< probability of dropping, [0, 1)
  std::uint64_t seed = 0;
  /// (2) i64: the step, of which 32 bits count, and the index of sequence 0 in the global batch;
  /// read where the op runs, when active. All indices of sequences are below dropout_samples.
  TensorView counter{};
  [[nodiscard]] bool active() const { return rate > 0; }
};

/// What a global batch may have; a mask has 24 bits for the sample.
inline constexpr std::int64_t dropout_samples = 1 << 24;

/// Throws Error{internal} unless ops can draw for `site`.
void require_dropout_site(const DropoutSite& site);

/// The seed of place `site` of unit `unit`: drawn from the run's seed, so that places have streams
/// of their own and the 64-bit index is left to samples and elements.
inline std::uint64_t dropout_site_seed(std::uint64_t seed, std::uint32_t unit, std::uint32_t site) {
  const auto words = philox({seed, RandomPurpose::dropout, unit, ~std::uint64_t{site}});
  return (std::uint64_t{words[1]} << 32U) | words[0];
}

}  // namespace dstrain::ops
