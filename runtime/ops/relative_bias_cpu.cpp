#include "runtime/ops/relative_bias_cpu.h"

#include <algorithm>

#include "runtime/ops/elements.h"

namespace dstrain::ops {

std::int64_t RelativeBias::table_row(std::int64_t place) const {
  const std::int64_t ahead = place - (scores_.rows - 1);  // the column ahead of its row
  return buckets_.row_of(scores_.rows_are_keys ? -ahead : ahead);
}

void RelativeBias::fill(const TensorView& table, float factor) const {
  if (!active()) return;
  const std::int64_t heads = table.shape()[1];
  with_element_type(table.dtype(), [&](auto element) {
    const auto* const values = elements<const decltype(element)>(table);
    for (std::int64_t place = 0; place < scores_.distances(); ++place) {
      const auto* const row = values + table_row(place) * heads;
      for (std::int64_t head = 0; head < heads; ++head) {
        memory_[head * scores_.distances() + place] = to_float(row[head]) * factor;
      }
    }
  });
}

void RelativeBias::sum_rows(const float* by_distance, float* sums) const {
  std::fill_n(sums, buckets_.count, 0.0F);
  for (std::int64_t place = 0; place < scores_.distances(); ++place) {
    sums[table_row(place)] += by_distance[place];
  }
}

}  // namespace dstrain::ops
