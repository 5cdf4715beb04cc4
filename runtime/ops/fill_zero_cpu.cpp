#include <cstring>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/fill_zero.h"
#include "runtime/tensor/host_access.h"

namespace dstrain::ops::cpu {

void fill_zero(const TensorView& values, StreamView stream) {
  cpu_stream(stream).launch([to = host_access(values)] {
    constexpr Bytes chunk_bytes = elementwise_chunk * size_of(DType::f32);
    for_chunks(to.bytes(), chunk_bytes, [&](std::int64_t begin, std::int64_t end) {
      std::memset(to.data() + begin, 0, static_cast<std::size_t>(end - begin));
    });
  });
}

}  // namespace dstrain::ops::cpu
