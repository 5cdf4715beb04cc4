#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/cuda/turn_heads.h"

namespace dstrain::ops::gpu {
namespace {

/// Element i is a rotated pair of features of a row, or past those a single feature, in all heads,
/// which share the angle.
template <class T>
struct TurnRows {
  HeadCounts counts;
  Rotary rotary;
  HeadMatrix<const T> from;
  HeadMatrix<T> to;

  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t pairs = rotary.dims / 2;
    const std::int64_t row = i / (counts.head_size - pairs);
    const std::int64_t low = i % (counts.head_size - pairs);
    const T* source = from.data + row * from.stride + low;
    T* target = to.data + row * to.stride + low;
    if (low < pairs) {
      const Turn turn = turn_of(rotary, row % from.rows, static_cast<int>(low), 1);
#pragma unroll 4
      for (std::int64_t head = 0; head < counts.heads; ++head) {
        const float first = to_float(source[head * counts.head_size]);
        const float second = to_float(source[head * counts.head_size + pairs]);
        target[head * counts.head_size] = from_float<T>(first * turn.cosine + second * turn.sine);
        target[head * counts.head_size + pairs] =
            from_float<T>(second * turn.cosine - first * turn.sine);
      }
    } else {
#pragma unroll 4
      for (std::int64_t head = 0; head < counts.heads; ++head) {
        target[head * counts.head_size + pairs] = source[head * counts.head_size + pairs];
      }
    }
  }
};

}  // namespace

template <class T>
void turn_heads(const HeadCounts& counts,
                const Rotary& rotary,
                const HeadMatrix<const T>& from,
                const HeadMatrix<T>& to,
                StreamView stream) {
  for_elements("attention", counts.rows * (counts.head_size - rotary.dims / 2),
               TurnRows<T>{counts, rotary, from, to}, stream);
}
template void turn_heads<BFloat16>(const HeadCounts&,
                                   const Rotary&,
                                   const HeadMatrix<const BFloat16>&,
                                   const HeadMatrix<BFloat16>&,
                                   StreamView);
template void turn_heads<Float16>(const HeadCounts&,
                                  const Rotary&,
                                  const HeadMatrix<const Float16>&,
                                  const HeadMatrix<Float16>&,
                                  StreamView);

}  // namespace dstrain::ops::gpu
