#include "runtime/ops/add.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops {

void add(const TensorView& values, const TensorView& sum, StreamView stream) {
  require_f32(values, {sum.numel()}, "values");
  require_f32(sum, {sum.numel()}, "sum");
  stream.launch([values, sum] {
    for_chunks(sum.numel(), elementwise_chunk,
               [to = floats(sum), from = floats(values)](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) to[i] += from[i];
               });
  });
}

}  // namespace dstrain::ops
