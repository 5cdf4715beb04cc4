#include "zero/swapped_states.h"

#include <utility>

#include "runtime/ops/add.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/square_sum.h"

namespace dstrain::zero {
namespace {

using engine::StateUse;
using offload::FileRange;

/// A record for each run, then the second ones.
std::vector<Bytes> record_sizes(std::span<const StateRun> runs, EarlyUpdate early) {
  std::vector<Bytes> sizes;
  for (int place = 0; place < records_per_run(early); ++place) {
    for (const StateRun& run : runs) {
      sizes.push_back(run.home == MemoryTier::nvme ? StateRecord(run).bytes() : 0);
    }
  }
  return sizes;
}

}  // namespace

Bytes SwappedStates::gradient_bytes(std::span<const StateRun> runs, const Offload& offload) {
  Bytes bytes = 0;
  for (const StateRun& run : runs) bytes += StateRecord(run).gradient_bytes();
  return bytes * records_per_run(offload.early);
}

Bytes SwappedStates::state_bytes(std::span<const StateRun> runs, const Offload& offload) {
  return offload::RecordSwap::file_bytes(record_sizes(runs, offload.early)) -
         gradient_bytes(runs, offload);
}

Bytes SwappedStates::buffer_bytes(std::span<const StateRun> runs, const Offload& offload) {
  return offload::RecordSwap::buffer_bytes(record_sizes(runs, offload.early),
                                           offload.optimizer_buffers);
}

SwappedStates::SwappedStates(std::span<const StateRun> runs,
                             const Offload& offload,
                             const DiskPlace& place,
                             StreamView stream)
    : read_ahead_(offload.read_ahead && offload.optimizer_buffers > 1),
      swap_(place.io,
            place.directory,
            record_sizes(runs, offload.early),
            {offload.optimizer_buffers, offload.write_behind},
            place.buffers,
            stream),
      by_number_(runs.size()),
      by_put_(runs.size()) {
  const int count = static_cast<int>(runs.size());
  for (const StateRun& run : runs) {
    const int number = static_cast<int>(runs_.size());
    const int second = offload.early == EarlyUpdate::revocable ? number + count : number;
    runs_.push_back({run, StateRecord(run), number, second});
    if (run.home == MemoryTier::nvme) by_number_.note(number);
  }
  place.ledger.add(MemoryCategory::gradients, gradient_bytes(runs, offload));
  place.ledger.add(MemoryCategory::optimizer, state_bytes(runs, offload));
}

/// The buffer of a run, with `parts` of it read, while the next ones are being read.
std::span<std::byte> SwappedStates::fetch(int number, RecordParts parts, const RunOrder& order) {
  const Run& run = run_of(number);
  const std::span<std::byte> memory = swap_.take(run.record, run.layout.range(parts));
  const std::optional<int> next = read_ahead_ ? order.next(number) : std::nullopt;
  if (next) swap_.expect(run_of(*next).record, run_of(*next).layout.range(parts));
  swap_.wait(run.record);
  // The next may be a small one, that is read long before this one is updated.
  if (const std::optional<int> second = next ? order.next(*next) : std::nullopt) {
    swap_.expect_if_free(run_of(*second).record, run_of(*second).layout.range(parts));
  }
  return memory;
}

engine::StateLease SwappedStates::lease(const Run& run,
                                        std::span<std::byte> record,
                                        TensorView gradients) {
  run.layout.cut_states(record, states_);
  return {states_, gradients};
}

engine::StateLease SwappedStates::acquire(int number, StateUse use, StreamView /*stream*/) {
  const Run& run = run_of(number);
  if (run.early) {  // what was done is done again: the gradients went with the new states
    DSTRAIN_CHECK(use == StateUse::update && run.new_record != run.record,
                  "run {} was updated early", number);
    const std::span<std::byte> put =
        swap_.acquire(run.new_record, run.layout.range({.gradients = true}));
    const std::span<std::byte> old = fetch(number, {.states = true}, by_number_);
    return lease(run, old, run.layout.gradients(put));
  }
  const RecordParts parts{.gradients = use == StateUse::update, .states = use != StateUse::replace};
  const std::span<std::byte> record = fetch(number, parts, by_number_);
  return lease(run, record, run.layout.gradients(record));
}

void SwappedStates::release(int number, StateUse use, StreamView stream) {
  stream.synchronize();
  Run& run = run_of(number);
  swap_.release(run.record, run.layout.range({.states = use != StateUse::inspect}));
  if (std::exchange(run.early, false)) swap_.release(run.new_record, {});
}

void SwappedStates::begin(engine::MicroStep micro_step, bool early) {
  micro_step_ = micro_step;
  early_ = early;
  by_put_.restart();
  if (micro_step.first()) squares_ = {};
  if (!updates_early() || !read_ahead_ || !by_put_.first()) return;
  const Run& run = run_of(*by_put_.first());
  swap_.expect(run.record, run.layout.range({.gradients = !micro_step.first(), .states = true}));
}

void SwappedStates::put(int segment, TensorView gradients, Update update, StreamView stream) {
  for (std::size_t index = 0; index < runs_.size(); ++index) {
    const StateRun& place = runs_[index].place;
    if (place.segment != segment) continue;
    const int run = static_cast<int>(index);
    by_put_.note(run);
    const TensorView part = gradients.part(place.offset, {place.numel});
    if (updates_early()) {
      update_run(run, part, update, stream);
    } else {
      add_run(run, part, stream);
    }
  }
}

void SwappedStates::add_run(int number, TensorView gradients, StreamView stream) {
  const Run& run = run_of(number);
  const FileRange whole = run.layout.range({.gradients = true});
  const std::span<std::byte> memory =
      swap_.acquire(run.record, micro_step_.first() ? FileRange{} : whole);
  const TensorView sum = run.layout.gradients(memory);
  DSTRAIN_CHECK(!sum.empty(), "run {}'s gradients have no place", number);
  micro_step_.first() ? ops::convert(gradients, sum, stream) : ops::add(gradients, sum, stream);
  if (micro_step_.last()) ops::add_squares(sum, ops::view_of(squares_), stream);
  swap_.release(run.record, whole);
}

void SwappedStates::update_run(int number, TensorView gradients, Update update, StreamView stream) {
  Run& run = run_of(number);
  const bool revocable = run.new_record != run.record;
  const std::span<std::byte> record =
      fetch(number, {.gradients = !micro_step_.first(), .states = true}, by_put_);
  TensorView sum = run.layout.gradients(record);
  if (!micro_step_.first()) {
    ops::add(gradients, sum, stream);
  } else if (revocable) {
    ops::convert(gradients, sum, stream);
  } else {
    sum = gradients;
  }
  ops::add_squares(sum, ops::view_of(squares_), stream);
  update(run.place, lease(run, record, sum));
  run.early = true;
  swap_.release(run.record, run.layout.range({.gradients = revocable, .states = true}),
                run.new_record);
}

void SwappedStates::accept() {
  for (Run& run : runs_) {
    if (std::exchange(run.early, false)) std::swap(run.record, run.new_record);
  }
}

}  // namespace dstrain::zero
