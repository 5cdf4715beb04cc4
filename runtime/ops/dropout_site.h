#pragma once
#include <cstdint>

#include "runtime/numeric/philox.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// One dropout site of the model in one step: the inputs of a mask besides the sample and the
/// element. The same site gives the same mask in forward, in recomputation and in backward.
struct DropoutSite {
  float rate = 0;  ///< probability of dropping, [0, 1)
  std::uint64_t seed = 0;
  /// (2) i64: the step, of which 32 bits count, and the index of sequence 0 in the global batch;
  /// read when the op runs, if active. All sequence indices are below dropout_samples.
  TensorView counter{};
  [[nodiscard]] bool active() const { return rate > 0; }
};

/// Most samples of a global batch: a mask has 24 bits for the sample.
inline constexpr std::int64_t dropout_samples = 1 << 24;

/// Throws Error{internal} unless ops can draw for `site`.
void require_dropout_site(const DropoutSite& site);

/// Returns the seed of place `site` of unit `unit`, drawn from the run's seed. Each place has its
/// own stream, and the 64-bit index is free for samples and elements.
inline std::uint64_t dropout_site_seed(std::uint64_t seed, std::uint32_t unit, std::uint32_t site) {
  const auto words = philox({seed, RandomPurpose::dropout, unit, ~std::uint64_t{site}});
  return (std::uint64_t{words[1]} << 32U) | words[0];
}

}  // namespace dstrain::ops
