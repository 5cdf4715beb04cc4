#include "runtime/model/unit_record.h"

#include "runtime/tensor/arena.h"

namespace dstrain::model {

std::vector<TensorView> UnitRecord::cached_of(int layer, const CacheCall& cache) const {
  Arena arena(cache.memory);
  for (int before = 0; before < layer; ++before) {
    for (const CachedSpec& each : at(before).layer->cached(cache.shape)) {
      arena.take(each.shape, dtype);
    }
  }
  std::vector<TensorView> views;
  for (const CachedSpec& each : at(layer).layer->cached(cache.shape)) {
    views.push_back(arena.take(each.shape, dtype));
  }
  return views;
}

std::vector<CachedTensor> UnitRecord::cached(const CacheCall& cache) const {
  Arena arena(cache.memory);
  std::vector<CachedTensor> tensors;
  for (const RecordedLayer& recorded : layers) {
    for (const CachedSpec& each : recorded.layer->cached(cache.shape)) {
      tensors.push_back({arena.take(each.shape, dtype), each.axis});
    }
  }
  return tensors;
}

Bytes UnitRecord::cache_bytes(const CacheShape& shape) const {
  Arena arena;
  for (const RecordedLayer& recorded : layers) {
    for (const CachedSpec& each : recorded.layer->cached(shape)) arena.take(each.shape, dtype);
  }
  return arena.used();
}

}  // namespace dstrain::model
