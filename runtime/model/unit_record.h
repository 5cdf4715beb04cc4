#pragma once
#include <memory>
#include <vector>

#include "runtime/model/layer.h"

namespace dstrain::model {

/// A value of a unit: dense (B, T, features), or (B, S, features) on the axis of the source.
struct RecordedValue {
  static constexpr int none = -1;
  std::int64_t features = 0;
  DType dtype = DType::f32;
  Axis axis = Axis::target;
  int producer = none;  ///< index into UnitRecord::layers
  int input = none;     ///< index into UnitSpec::reads
  int output = none;    ///< index into UnitSpec::writes
};

struct RecordedLayer {
  std::unique_ptr<const Layer> layer{};
  std::vector<int> inputs{};  ///< values
  int output = RecordedValue::none;
};

/// The layers of a unit as UnitBuilder has recorded them, in the order in which forward runs them.
/// Those of losses are the last ones, and have no output.
struct UnitRecord {
  UnitSpec spec;
  DType dtype = DType::f32;
  std::vector<RecordedLayer> layers;
  std::vector<RecordedValue> values;

  [[nodiscard]] const RecordedLayer& at(int layer) const {
    return layers[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] const RecordedValue& value(int value) const {
    return values[static_cast<std::size_t>(value)];
  }
  /// Returns the tensors of a layer in the unit's cache, which has the bytes that cache_bytes()
  /// gives.
  [[nodiscard]] std::vector<TensorView> cached_of(int layer, const CacheCall& cache) const;
  /// Returns those of all layers.
  [[nodiscard]] std::vector<CachedTensor> cached(const CacheCall& cache) const;
  [[nodiscard]] Bytes cache_bytes(const CacheShape& shape) const;

  /// Returns the batch shape for a layer.
  [[nodiscard]] BatchShape shape_at(int layer, BatchShape shape) const {
    const RecordedLayer& recorded = at(layer);
    const bool writes = recorded.output != RecordedValue::none;
    return shape.on(value(writes ? recorded.output : recorded.inputs.front()).axis);
  }
};

}  // namespace dstrain::model
