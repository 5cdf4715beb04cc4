#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>

#include "runtime/model/parameter_source.h"

namespace dstrain::model {

/// Draws parameters by their ParameterInit. Element i of the p-th parameter depends only on (seed,
/// p, i), so any rank draws its own slice and all ranks agree.
class RandomSource final : public ParameterSource {
 public:
  /// `parameters`: all of the model, in order.
  RandomSource(std::uint64_t seed, std::span<const ParameterSpec> parameters);

  void read(const ParameterSpec& spec, std::int64_t begin, std::span<float> values) const override;

 private:
  std::uint64_t seed_;
  std::unordered_map<std::string, std::uint32_t> ordinals_;
};

}  // namespace dstrain::model
