#include <algorithm>
#include <cstring>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/copy_rows.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/tensor/host_access.h"

namespace dstrain::ops::cpu {

void copy_rows(const TensorView& source, const TensorView& target, StreamView stream) {
  cpu_stream(stream).launch([from = host_access(source), to = host_access(target)] {
    const std::int64_t rows = from.shape()[0];
    const std::int64_t columns = from.shape()[1];
    const Bytes size = size_of(from.dtype());
    const std::int64_t rows_at_once = std::max<std::int64_t>(1, elementwise_chunk / columns);
    for_chunks(rows, rows_at_once, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        std::memcpy(to.data() + row * to.row_stride() * size,
                    from.data() + row * from.row_stride() * size,
                    static_cast<std::size_t>(columns * size));
      }
    });
  });
}

}  // namespace dstrain::ops::cpu
