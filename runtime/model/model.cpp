#include "runtime/model/model.h"

#include <algorithm>

namespace dstrain::model {

std::int64_t Model::features() const {
  std::int64_t features = 0;
  for (const auto& unit : units) features = std::max(features, unit->spec().features);
  return features;
}

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

TypedVector<PartId, Part> Model::parts() const {
  TypedVector<PartId, Part> parts;
  for (int unit = 0; unit < static_cast<int>(units.size()); ++unit) {
    parts.push_back({unit});
    const auto tiles = static_cast<int>(units[static_cast<std::size_t>(unit)]->spec().tiles.size());
    for (int tile = 0; tile < tiles; ++tile) parts.push_back({unit, tile});
  }
  return parts;
}

double Model::flops(BatchShape shape) const {
  double products = 0;
  for (const auto& unit : units) {
    const UnitSpec& spec = unit->spec();
    const Axis axis = spec.writes.empty() ? Axis::target : spec.writes.front().axis;
    for (const ParameterSpec& parameter : spec.parameters) {
      products += static_cast<double>(parameter.shape.numel() * shape.on(axis).rows());
    }
  }
  for (const AttentionWidth& kind : attention) {
    const double square =
        static_cast<double>(shape.on(kind.queries).rows() * shape.on(kind.keys).tokens);
    products += (kind.causal ? 1.0 : 2.0) * square * static_cast<double>(kind.width);
  }
  return 6 * products;
}

}  // namespace dstrain::model
