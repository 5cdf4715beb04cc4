#include "zero/gradient_exchange.h"

#include <algorithm>

#include "runtime/ops/convert.h"

namespace dstrain::zero {
namespace {

DType sent_dtype(const FlatLayout& layout, const config::StatePrecision& precision, DType summed) {
  return layout.world() == 1 ? summed : precision.communication;
}

/// Returns the dtype that gradients are rounded to before they are sent. `summed`: their own dtype.
DType rounded_dtype(const FlatLayout& layout,
                    const config::StatePrecision& precision,
                    DType summed) {
  if (layout.world() == 1) return summed;
  return summed == precision.gradients ? precision.communication : precision.gradients;
}

}  // namespace

Bytes GradientExchange::bytes(const FlatLayout& layout,
                              const config::StatePrecision& precision,
                              DType summed) {
  const DType rounded = rounded_dtype(layout, precision, summed);
  if (rounded == summed) return 0;
  std::int64_t largest = 0;
  for (const Segment& segment : layout.segments()) {
    if (segment.trainable) largest = std::max(largest, segment.numel);
  }
  return largest * size_of(rounded);
}

GradientExchange::GradientExchange(const FlatLayout& layout,
                                   const config::StatePrecision& precision,
                                   DType summed,
                                   Communication communication,
                                   MemoryResource& buffers,
                                   StreamView stream)
    : communication_(communication),
      sent_(sent_dtype(layout, precision, summed)),
      rounded_(rounded_dtype(layout, precision, summed)),
      memory_(bytes(layout, precision, summed), buffers, stream) {}

/// Returns `values` in the dtype that is sent.
TensorView GradientExchange::sent(TensorView values) const {
  if (values.dtype() == rounded_) return values;
  const TensorView copy = memory_.block().cut(0, rounded_, {values.numel()});
  ops::convert(values, copy, communication_.stream());
  if (rounded_ == sent_) return copy;
  ops::convert(copy, values, communication_.stream());
  return values;
}

void GradientExchange::reduce_scatter(TensorView whole, TensorView shard) const {
  comm::Communicator& communicator = communication_.communicator();
  const StreamView stream = communication_.stream();
  const TensorView all = sent(whole);
  if (shard.dtype() == sent_) return communicator.reduce_scatter(all, shard, stream);
  const TensorView own = all.part(communicator.rank() * shard.numel(), {shard.numel()});
  communicator.reduce_scatter(all, own, stream);
  ops::convert(own, shard, stream);
}

void GradientExchange::all_reduce(TensorView values) const {
  const TensorView all = sent(values);
  communication_.communicator().all_reduce(all, communication_.stream());
  if (!all.begins_with(values)) ops::convert(all, values, communication_.stream());
}

}  // namespace dstrain::zero
