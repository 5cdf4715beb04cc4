#include "runtime/engine/decoder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/engine/frame_plan.h"
#include "runtime/ops/convert.h"
#include "runtime/tensor/arena.h"

namespace dstrain::engine {
namespace {

/// Plans exist for so many tokens, and for multiples of `room_tokens`.
constexpr std::int64_t smallest_room = 16;
constexpr std::int64_t room_tokens = 64;

std::int64_t room(std::int64_t tokens, std::int64_t most) {
  return std::min(tokens <= smallest_room ? smallest_room : round_up(tokens, room_tokens), most);
}

std::vector<std::int64_t> rooms(std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t tokens = 1; tokens <= most; tokens = all.back() + 1) {
    all.push_back(room(tokens, most));
  }
  return all;
}

Bytes cache_bytes_of(const model::Unit& unit, const Decoder::Options& options) {
  return round_up(unit.cache_bytes({.slots = options.slots,
                                    .positions = options.positions,
                                    .chunk = options.chunk,
                                    .source = options.source}),
                  64);
}

}  // namespace

Decoder::CallInputs::CallInputs(const TensorView& all, const Options& options) {
  Arena arena(all);
  tokens = arena.take({std::max(options.chunk, options.slots)}, DType::i32);
  slot = arena.take({options.slots}, DType::i32);
  past = arena.take({options.slots}, DType::i32);
  length = arena.take({options.slots}, DType::i32);
  source_count = arena.take({options.slots}, DType::i32);
  source = arena.take({options.source}, DType::i32);
  bytes = arena.used();
  block = all.empty() ? all : all.part(0, {bytes});
}

Decoder::Options Decoder::sane(const model::Model& model, Options options) {
  DSTRAIN_CHECK(options.slots > 0 && options.positions > 0, "{} sequences of {} positions",
                options.slots, options.positions);
  DSTRAIN_CHECK((options.source > 0) == model.pairs.has_value(), "sources of {} tokens",
                options.source);
  // The target of an encoder-decoder begins with one token.
  options.chunk = model.pairs ? 1 : std::min(options.chunk, options.positions);
  return options;
}

Decoder::Plans Decoder::make_plans(const model::Model& model, const Options& options) {
  Plans plans;
  const auto add = [&](model::BatchShape shape) {
    plans[shape] = std::make_shared<const FramePlan>(
        plan_frame(model, {.shape = shape, .mode = FrameMode::inference}));
  };
  add({options.slots, 1, 0, options.positions});
  for (const std::int64_t source : rooms(options.source)) add({1, 1, source, 0});
  if (model.pairs) return plans;
  for (const std::int64_t tokens : rooms(options.chunk)) {
    add({1, tokens, 0, 0});
    add({1, tokens, 0, options.positions});
  }
  return plans;
}

model::BatchShape Decoder::room_for(model::BatchShape shape, const Options& options) {
  if (shape.tokens == 1 && shape.context > 0) shape.sequences = options.slots;
  if (shape.source > 0) {
    shape.source = room(shape.source, options.source);
  } else if (shape.tokens > 1 || shape.context == 0) {
    shape.tokens = room(shape.tokens, options.chunk);
  }
  return shape;
}

/// A ring has room for the window and a chunk. All positions are kept if a larger chunk needs no
/// more memory.
std::int64_t Decoder::rewind_max_of(const model::Model& model, Options options) {
  const Bytes bytes = cache_bytes(model, options);
  const std::int64_t chunk = std::exchange(options.chunk, options.positions);
  return cache_bytes(model, options) == bytes ? options.positions : chunk;
}

Bytes Decoder::frame_bytes(const Plans& plans) {
  Bytes most = 0;
  for (const auto& [shape, plan] : plans) most = std::max(most, plan->bytes.device);
  return most;
}

Bytes Decoder::cache_bytes(const model::Model& model, const Options& given) {
  const Options options = sane(model, given);
  Bytes sum = 0;
  for (const auto& unit : model.units) sum += cache_bytes_of(*unit, options);
  return sum;
}

FrameBytes Decoder::bytes(const model::Model& model, const Options& given) {
  const Options options = sane(model, given);
  const Bytes inputs = CallInputs({}, options).bytes;
  const Bytes staging = inputs + options.slots * model.vocabulary * size_of(DType::f32);
  const Bytes device =
      frame_bytes(make_plans(model, options)) + std::max<Bytes>(cache_bytes(model, options), 64);
  if (shares_host_memory(model.device)) return {device + staging, 0};
  return {device + inputs, staging};
}

Decoder::Decoder(const EngineInputs& inputs, const Options& options, StreamView stream)
    : inputs_(inputs),
      options_(sane(inputs.model, options)),
      stream_(stream),
      runner_(inputs, stream),
      rewind_max_(rewind_max_of(inputs.model, options_)),
      apart_(!shares_host_memory(stream.device().kind)),
      plans_(make_plans(inputs.model, options_)),
      frame_memory_(frame_bytes(plans_), inputs.activations, stream),
      cache_memory_(
          std::max<Bytes>(cache_bytes(inputs.model, options_), 64), inputs.activations, stream),
      staging_(CallInputs({}, options_).bytes +
                   options_.slots * inputs.model.vocabulary * size_of(DType::f32),
               apart_ ? inputs.host_activations : inputs.activations,
               stream),
      staged_(staging_.block(), options_),
      call_inputs_(staged_),
      logits_(staging_.block().cut(
          staged_.bytes, DType::f32, {options_.slots, inputs.model.vocabulary})) {
  if (apart_) {
    device_inputs_ = Buffer(staged_.bytes, inputs.activations, stream);
    call_inputs_ = CallInputs(device_inputs_.block(), options_);
  }
  Bytes begin = 0;
  for (const auto& unit : inputs.model.units) {
    const Bytes bytes = cache_bytes_of(*unit, options_);
    caches_.push_back({.shape = {.slots = options_.slots,
                                 .positions = options_.positions,
                                 .chunk = options_.chunk,
                                 .source = options_.source},
                       .memory = cache_memory_.block().cut(begin, DType::u8, {bytes}),
                       .places = {}});
    std::ranges::copy(unit->cached(caches_.back()), std::back_inserter(cached_));
    begin += bytes;
  }
}

Decoder::Planned& Decoder::planned(model::BatchShape shape) {
  const auto found = frames_.find(shape);
  if (found != frames_.end()) return found->second;
  const auto plan = plans_.find(room_for(shape, options_));
  DSTRAIN_CHECK(plan != plans_.end(), "no plan for {} sequences of {} tokens", shape.sequences,
                shape.tokens);
  Frame frame(inputs_.model, plan->second, shape, {frame_memory_.block()});
  std::vector<model::PartId> parts = runner_.parts_of(frame);
  return frames_.emplace(shape, Planned{std::move(frame), std::move(parts)}).first->second;
}

void Decoder::stage(std::span<const std::int32_t> values, const TensorView& target) {
  if (values.empty()) return;
  const Shape shape{std::ssize(values)};
  // A view may be written to; a copy only reads its source.
  auto* const source = const_cast<std::int32_t*>(values.data());
  ops::convert(HostView(source, DType::i32, shape), target.part(0, shape), host_stream_);
}

void Decoder::fill(const Batch& batch) {
  stage(batch.tokens, staged_.tokens);
  stage(batch.slot, staged_.slot);
  stage(batch.past, staged_.past);
  stage(batch.length, staged_.length);
  stage(batch.source_count, staged_.source_count);
  stage(batch.source, staged_.source);
  if (apart_) ops::convert(staged_.block, call_inputs_.block, stream_);
}

model::UnitCall Decoder::call_of(const model::BatchShape& shape) const {
  const auto first = [&](const TensorView& of) {
    return of.part(0, {shape.sequences});
  };
  model::UnitCall call;
  call.shape = shape;
  call.tokens =
      call_inputs_.tokens.part(0, {shape.rows()}).reshaped({shape.sequences, shape.tokens});
  if (options_.source > 0) call.source_count = first(call_inputs_.source_count);
  if (shape.source > 0) {
    call.source = call_inputs_.source.part(0, {shape.source}).reshaped({1, shape.source});
  }
  return call;
}

HostView Decoder::run(const Batch& batch) {
  const std::int64_t sequences = std::ssize(batch.slot);
  const std::int64_t tokens = std::ssize(batch.tokens) / sequences;
  const bool begins = std::ranges::all_of(batch.past, [](std::int32_t past) { return past == 0; });
  const bool whole = batch.length.front() == tokens;
  const model::BatchShape shape{sequences, tokens, std::ssize(batch.source),
                                begins && whole ? 0 : options_.positions};
  Planned& at = planned(shape);
  fill(batch);
  model::UnitCall call = call_of(shape);
  call.logits = logits_.rows(0, sequences);
  const auto first = [&](const TensorView& of) {
    return of.part(0, {sequences});
  };
  for (model::CacheCall& cache : caches_) {
    cache.places = {first(call_inputs_.slot), first(call_inputs_.past), first(call_inputs_.length)};
  }
  inputs_.store.expect(at.parts, 1);
  runner_.run(at.frame, call, {.caches = caches_});
  stream_.synchronize();
  return logits_.rows(0, sequences);
}

void Decoder::copy(std::span<const Copy> copies) {
  for (const Copy& each : copies) {
    const auto clashes = [&](const Copy& other) {
      return each.to == other.from || (each.to == other.to && &each != &other);
    };
    DSTRAIN_CHECK(each.from >= 0 && each.to >= 0 && each.from < options_.slots &&
                      each.to < options_.slots && std::ranges::none_of(copies, clashes),
                  "slot {} to {} of {}", each.from, each.to, options_.slots);
  }
  for (const model::CachedTensor& tensor : cached_) {
    const std::int64_t rows = tensor.view.shape()[1];
    const std::int64_t columns = tensor.view.shape()[2];
    for (const Copy& each : copies) {
      const std::int64_t used = tensor.axis == model::Axis::source ? each.source : each.past;
      const Shape shape{std::min(used, rows), columns};
      if (shape.numel() == 0) continue;
      const auto slot = [&](std::int64_t index) {
        return tensor.view.part(index * rows * columns, shape);
      };
      ops::convert(slot(each.from), slot(each.to), stream_);
    }
  }
}

void Decoder::pass(Sources sources) {
  const Planned& at =
      planned(sources == Sources::some ? model::BatchShape{1, 1, options_.source, 0}
                                       : model::BatchShape{1, 1, 0, options_.positions});
  inputs_.store.expect(at.parts, 1);
  runner_.pass(at.parts);
  stream_.synchronize();
}

}  // namespace dstrain::engine
