#include "runtime/model/model.h"

namespace dstrain::model {

std::vector<ParameterSpec> Model::parameters() const {
  std::vector<ParameterSpec> all;
  for (const auto& unit : units) {
    all.insert(all.end(), unit->spec().parameters.begin(), unit->spec().parameters.end());
  }
  return all;
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const ParameterSpec& parameter : parameters()) count += parameter.shape.numel();
  return count;
}

std::vector<Part> Model::parts() const {
  std::vector<Part> parts;
  for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
    parts.push_back({unit});
    const auto tiles = static_cast<int>(units[static_cast<std::size_t>(unit)]->spec().tiles.size());
    for (int tile = 0; tile < tiles; ++tile) parts.push_back({unit, tile});
  }
  return parts;
}

double Model::flops_per_token(std::int64_t sequence_length) const {
  return 6.0 * static_cast<double>(parameter_count()) +
         6.0 * static_cast<double>(attention_width * sequence_length);
}

}  // namespace dstrain::model
