#include "runtime/engine/micro_batch.h"

#include <algorithm>

#include "runtime/base/label.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/fill_zero.h"

namespace dstrain::engine {
namespace {

/// Copies host values to the start of `target`.
void copy_in(std::span<const std::int32_t> values, const TensorView& target, StreamView stream) {
  const Shape shape{std::ssize(values)};
  // A view may be written to; a copy only reads its source.
  auto* const source = const_cast<std::int32_t*>(values.data());
  ops::convert(HostView(source, DType::i32, shape), target.part(0, shape), stream);
}

}  // namespace

std::int64_t counted_labels(std::span<const MicroBatch> batches) {
  std::int64_t count = 0;
  for (const MicroBatch& batch : batches) {
    count += std::count_if(batch.labels.begin(), batch.labels.end(),
                           [](std::int32_t label) { return label != ignored_label; });
  }
  return count;
}

DeviceBatch::Views::Views(Arena& arena, std::int64_t rows)
    : tokens(arena.take({rows}, DType::i32)),
      labels(arena.take({rows}, DType::i32)),
      label_weight(arena.take({1})),
      loss(arena.take({1}, DType::f64)),
      squares(arena.take({ExactSum::numel}, DType::i64)) {}

DeviceBatch::Views DeviceBatch::cut(const TensorView& block, std::int64_t rows) {
  Arena arena(block);
  return {arena, rows};
}

Bytes DeviceBatch::bytes(std::int64_t rows) {
  Arena arena;
  Views(arena, rows);
  return arena.used();
}

DeviceBatch::DeviceBatch(std::int64_t rows, MemoryResource& memory, StreamView stream)
    : memory_(bytes(rows), memory, stream), views_(cut(memory_.block(), rows)) {}

void DeviceBatch::begin(float label_weight, StreamView stream) {
  label_weight_ = label_weight;
  ops::convert(HostView(std::span(&label_weight_, 1), {1}), views_.label_weight, stream);
  ops::fill_zero(views_.loss, stream);
}

void DeviceBatch::take(const MicroBatch& batch, model::BatchShape shape, StreamView stream) {
  shape_ = {shape.sequences, shape.tokens};
  DSTRAIN_CHECK(std::ssize(batch.tokens) == shape.rows(), "{} tokens for {}", batch.tokens.size(),
                to_string(shape_));
  copy_in(batch.tokens, views_.tokens, stream);
  if (batch.labels.empty()) return;
  DSTRAIN_CHECK(batch.labels.size() == batch.tokens.size(), "{} labels for {} tokens",
                batch.labels.size(), batch.tokens.size());
  copy_in(batch.labels, views_.labels, stream);
}

void DeviceBatch::show(model::UnitCall& call) const {
  call.tokens = views_.tokens.part(0, shape_);
  call.labels = views_.labels.part(0, shape_);
  call.label_weight = views_.label_weight;
  call.loss = views_.loss;
}

double DeviceBatch::loss(StreamView stream) const {
  double loss = 0;
  ops::convert(views_.loss, HostView(&loss, DType::f64, {1}), stream);
  stream.synchronize();
  return loss;
}

}  // namespace dstrain::engine
