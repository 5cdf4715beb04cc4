#include "runtime/engine/step_block.h"

#include <cmath>
#include <cstring>

#include "runtime/ops/convert.h"
#include "runtime/ops/fill_zero.h"

namespace dstrain::engine {
namespace {

constexpr Bytes told_bytes = 64;  ///< of one decision on the host
constexpr Bytes all_told_bytes = 2 * told_bytes;

std::int64_t columns_of(const TensorView& rows) {
  return rows.empty() ? 0 : rows.shape()[1];
}

}  // namespace

StepBlock::Inputs::Inputs(const TensorView& all, const Options& options) {
  Arena arena(all);
  tokens = arena.take({options.rows}, DType::i32);
  labels = arena.take({options.rows}, DType::i32);
  if (options.documents) document_start = arena.take({options.rows}, DType::i32);
  if (options.features > 0) features = arena.take({options.rows, options.features});
  if (options.targets > 0) targets = arena.take({options.rows, options.targets});
  source = arena.take({options.source_rows}, DType::i32);
  source_count = arena.take({options.sources}, DType::i32);
  label_weight = arena.take({1});
  label_count = arena.take({1}, DType::f64);
  loss_scale = arena.take({1}, DType::f64);
  rounding = arena.take({1}, DType::i64);
  scalars = arena.take({options.parameter_groups, rules::scalar_numel});
  counters = arena.take({options.micro_batches, 2}, DType::i64);
  bytes = arena.used();
  block = all.empty() ? all : all.part(0, {bytes});
}

StepBlock::Results::Results(const TensorView& block, const Options& options) {
  Arena arena(block);
  own_total = arena.take({ops::step_total_numel}, DType::i64);
  totals = arena.take({options.ranks, ops::step_total_numel}, DType::i64);
  decision = arena.take({ops::StepDecision::numel}, DType::f64);
  bytes = arena.used();
}

FrameBytes StepBlock::bytes(const Options& options, DeviceKind device) {
  const Sizes sizes(options, device);
  if (shares_host_memory(device)) return {sizes.device + sizes.staging, 0};
  return {sizes.device, sizes.staging};
}

StepBlock::Sizes::Sizes(const Options& options, DeviceKind kind)
    : inputs(Inputs({}, options).bytes),
      staging(all_told_bytes + inputs),
      device(Results({}, options).bytes + (shares_host_memory(kind) ? 0 : inputs)) {}

StepBlock::StepBlock(const Options& options, Memory memory, StreamView stream)
    : StepBlock(options, Sizes(options, stream.device().kind), memory, stream) {}

StepBlock::StepBlock(const Options& options, const Sizes& sizes, Memory memory, StreamView stream)
    : apart_(!shares_host_memory(stream.device().kind)),
      staging_(sizes.staging, apart_ ? memory.host : memory.device, stream),
      device_(sizes.device, memory.device, stream),
      staged_(staging_.block().cut(all_told_bytes, DType::u8, {sizes.inputs}), options),
      inputs_(staged_),
      results_(device_.block(), options) {
  if (apart_) {
    inputs_ = Inputs(device_.block().part(results_.bytes, {staged_.bytes}), options);
  }
  for (std::size_t i = 0; i < told_.size(); ++i) {
    told_.at(i).decision = staging_.block().cut(static_cast<Bytes>(i) * told_bytes, DType::f64,
                                                {ops::StepDecision::numel});
  }
}

void StepBlock::stage(const TensorView& values, const TensorView& target) {
  ops::convert(values, target, host_stream_);
}

template <class T>
void StepBlock::stage(std::span<const T> values, std::int64_t begin, const TensorView& target) {
  if (values.empty()) return;
  const Shape shape{std::ssize(values)};
  // A view may be written to; a copy only reads its source.
  auto* const source = const_cast<T*>(values.data());
  stage(HostView(source, target.dtype(), shape), target.part(begin, shape));
}

void StepBlock::fill(std::span<const MicroBatch> batches,
                     const Numbers& numbers,
                     StreamView stream) {
  // Until then what is there is of the step before.
  if (!apart_) stream.synchronize();
  if (copied_) copied_->wait_on(waiting_);
  std::int64_t row = 0;
  std::int64_t source_row = 0;
  std::int64_t source = 0;
  std::int64_t index = 0;
  for (const MicroBatch& batch : batches) {
    std::array<std::int64_t, 2> counter{numbers.step, batch.first_sample};
    stage(HostView(counter, {1, 2}), staged_.counters.rows(index++, 1));
    stage(batch.tokens, row, staged_.tokens);
    DSTRAIN_CHECK(batch.labels.empty() || batch.labels.size() == batch.tokens.size(),
                  "{} labels for {} tokens", batch.labels.size(), batch.tokens.size());
    if (!batch.labels.empty()) stage(batch.labels, row, staged_.labels);
    DSTRAIN_CHECK(batch.document_start.empty() == staged_.document_start.empty(),
                  "documents of {} tokens", batch.document_start.size());
    stage(batch.document_start, row, staged_.document_start);
    stage(batch.features, row * columns_of(staged_.features), staged_.features);
    stage(batch.targets, row * columns_of(staged_.targets), staged_.targets);
    row += std::ssize(batch.tokens);
    stage(batch.source, source_row, staged_.source);
    stage(batch.source_count, source, staged_.source_count);
    source_row += std::ssize(batch.source);
    source += std::ssize(batch.source_count);
  }
  auto count = static_cast<double>(numbers.labels);
  double scale = numbers.loss_scale;
  std::int64_t rounding = numbers.rounding;
  float weight = numbers.labels == 0 ? 0
                                     : static_cast<float>(scale * numbers.gradient_factor) /
                                           static_cast<float>(numbers.labels);
  stage(HostView(std::span(&weight, 1), {1}), staged_.label_weight);
  stage(HostView(&count, DType::f64, {1}), staged_.label_count);
  stage(HostView(&scale, DType::f64, {1}), staged_.loss_scale);
  stage(HostView(&rounding, DType::i64, {1}), staged_.rounding);
  std::int64_t group = 0;
  for (rules::ScalarValues scalars : numbers.scalars) {
    stage(HostView(scalars, {1, std::ssize(scalars)}), staged_.scalars.rows(group++, 1));
  }
  if (apart_) {
    ops::convert(staged_.block, inputs_.block, stream);
    copied_ = Event::record(stream);
  }
  if (!numbers.adds) ops::fill_zero(results_.own_total, stream);
}

void StepBlock::show(std::size_t index, model::UnitCall& call) const {
  const Shape shape{call.shape.sequences, call.shape.tokens};
  const std::int64_t begin = static_cast<std::int64_t>(index) * shape.numel();
  call.tokens = inputs_.tokens.part(begin, shape);
  call.labels = inputs_.labels.part(begin, shape);
  if (!inputs_.document_start.empty()) {
    call.document_start = inputs_.document_start.part(begin, shape);
  }
  const auto columns = [begin, shape](const TensorView& rows) {
    const std::int64_t width = columns_of(rows);
    return width > 0 ? rows.part(begin * width, {shape[0], shape[1], width}) : TensorView();
  };
  call.features = columns(inputs_.features);
  call.targets = columns(inputs_.targets);
  if (call.shape.source > 0) {
    const auto batch = static_cast<std::int64_t>(index);
    const Shape source{call.shape.sequences, call.shape.source};
    call.source = inputs_.source.part(batch * source.numel(), source);
    call.source_count =
        inputs_.source_count.part(batch * call.shape.sequences, {call.shape.sequences});
  }
  call.label_weight = inputs_.label_weight;
  call.dropout.counter = inputs_.counters.part(2 * static_cast<std::int64_t>(index), {2});
  call.loss = own_loss();
}

/// The last word of the rank's total.
TensorView StepBlock::own_loss() const {
  return results_.own_total.part(ops::step_total_numel - 1, {1}).reused(DType::f64, {1});
}

double StepBlock::loss(StreamView stream) const {
  double loss = 0;
  ops::convert(own_loss(), HostView(&loss, DType::f64, {1}), stream);
  stream.synchronize();
  return loss;
}

void StepBlock::decide(std::int64_t step, double norm_max, StreamView stream) {
  ops::decide_step({.totals = results_.totals,
                    .labels = inputs_.label_count,
                    .loss_scale = inputs_.loss_scale,
                    .decision = results_.decision,
                    .norm_max = norm_max},
                   stream);
  Told& to = told(step);
  ops::convert(results_.decision, to.decision, stream);
  to.point = Event::record(stream);
}

ops::StepDecision StepBlock::decision(std::int64_t step) {
  const Told& from = told(step);
  from.point.value().wait_on(waiting_);
  ops::StepDecision decision;
  std::memcpy(&decision, from.decision.data(), sizeof(decision));
  for (double* const value : {&decision.loss, &decision.gradient_norm}) {
    if (std::isnan(*value)) *value = std::abs(*value);  // its sign is the processor's
  }
  return decision;
}

}  // namespace dstrain::engine
