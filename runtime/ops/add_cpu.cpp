#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/add.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::cpu {

void add(const TensorView& values, const TensorView& sum, StreamView stream) {
  cpu_stream(stream).launch([values, sum] {
    for_chunks(sum.numel(), elementwise_chunk,
               [to = floats(sum), from = floats(values)](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) to[i] += from[i];
               });
  });
}

}  // namespace dstrain::ops::cpu
