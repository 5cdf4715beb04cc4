#include "runtime/model/unit_record.h"

#include "runtime/tensor/arena.h"

namespace dstrain::model {

std::vector<TensorView> UnitRecord::cached_of(int layer, const CacheCall& cache) const {
  Arena arena(cache.memory);
  for (int before = 0; before < layer; ++before) {
    for (const Shape& shape : at(before).layer->cached(cache.shape)) arena.take(shape, dtype);
  }
  std::vector<TensorView> views;
  for (const Shape& shape : at(layer).layer->cached(cache.shape)) {
    views.push_back(arena.take(shape, dtype));
  }
  return views;
}

Bytes UnitRecord::cache_bytes(const CacheShape& shape) const {
  Arena arena;
  for (const RecordedLayer& recorded : layers) {
    for (const Shape& each : recorded.layer->cached(shape)) arena.take(each, dtype);
  }
  return arena.used();
}

}  // namespace dstrain::model
