#include "zero/swapped_states.h"

#include "runtime/optim/gradient_norm.h"
#include "zero/gradient_reducer.h"

namespace dstrain::zero {
namespace {

using engine::StateUse;
using offload::FileRange;

// A record: the gradients, then the states, each part in whole pieces of the file.
Bytes gradients_end(const StateRun& run) {
  return round_up(run.numel * size_of(DType::f32), offload::io_alignment);
}

Bytes record_end(const StateRun& run) {
  return gradients_end(run) +
         round_up(run.states * run.numel * size_of(DType::f32), offload::io_alignment);
}

std::vector<Bytes> record_sizes(std::span<const StateRun> runs) {
  std::vector<Bytes> sizes;
  for (const StateRun& run : runs) {
    sizes.push_back(run.home == MemoryTier::nvme ? record_end(run) : 0);
  }
  return sizes;
}

std::span<float> floats(std::span<std::byte> record, Bytes begin, std::int64_t numel) {
  return {reinterpret_cast<float*>(record.data() + begin), static_cast<std::size_t>(numel)};
}

}  // namespace

Bytes SwappedStates::gradient_bytes(std::span<const StateRun> runs) {
  Bytes bytes = 0;
  for (const StateRun& run : runs) bytes += run.home == MemoryTier::nvme ? gradients_end(run) : 0;
  return bytes;
}

Bytes SwappedStates::state_bytes(std::span<const StateRun> runs) {
  return offload::RecordSwap::file_bytes(record_sizes(runs)) - gradient_bytes(runs);
}

Bytes SwappedStates::buffer_bytes(std::span<const StateRun> runs, const Offload& offload) {
  return offload::RecordSwap::buffer_bytes(record_sizes(runs), offload.optimizer_buffers);
}

SwappedStates::SwappedStates(std::span<const StateRun> runs,
                             const Offload& offload,
                             const DiskPlace& place,
                             StreamView stream)
    : runs_(runs.begin(), runs.end()),
      read_ahead_(offload.read_ahead && offload.optimizer_buffers > 1),
      swap_(place.io,
            place.directory,
            record_sizes(runs),
            {offload.optimizer_buffers, offload.write_behind},
            place.buffers,
            stream) {
  place.ledger.add(MemoryCategory::gradients, gradient_bytes(runs));
  place.ledger.add(MemoryCategory::optimizer, state_bytes(runs));
}

FileRange SwappedStates::read_range(int run, StateUse use) const {
  const StateRun& place = runs_[static_cast<std::size_t>(run)];
  if (use == StateUse::replace) return {};
  return {use == StateUse::update ? 0 : gradients_end(place), record_end(place)};
}

/// The one to read ahead of use of `run`.
std::optional<int> SwappedStates::next_run(int run) const {
  if (!read_ahead_) return std::nullopt;
  for (auto next = static_cast<std::size_t>(run) + 1; next < runs_.size(); ++next) {
    if (runs_[next].home == MemoryTier::nvme) return static_cast<int>(next);
  }
  return std::nullopt;
}

engine::StateLease SwappedStates::acquire(int run, StateUse use, StreamView /*stream*/) {
  const std::span<std::byte> record = swap_.take(run, read_range(run, use));
  const std::optional<int> next = next_run(run);
  if (next) swap_.expect(*next, read_range(*next, use));
  swap_.wait(run);
  // The next may be a small one, that is read long before this one is updated.
  const std::optional<int> second = next ? next_run(*next) : std::nullopt;
  if (second) swap_.expect_if_free(*second, read_range(*second, use));
  const StateRun& place = runs_[static_cast<std::size_t>(run)];
  states_.clear();
  for (std::int64_t state = 0; state < place.states; ++state) {
    const Bytes begin = gradients_end(place) + state * place.numel * size_of(DType::f32);
    states_.push_back(floats(record, begin, place.numel));
  }
  return {states_, floats(record, 0, place.numel)};
}

void SwappedStates::release(int run, StateUse use, StreamView stream) {
  stream.synchronize();
  const StateRun& place = runs_[static_cast<std::size_t>(run)];
  const FileRange all{gradients_end(place), record_end(place)};
  swap_.release(run, use == StateUse::inspect ? FileRange{} : all);
}

void SwappedStates::begin(engine::MicroStep micro_step) {
  micro_step_ = micro_step;
  if (micro_step.first()) squares_ = {};
}

void SwappedStates::put(int segment, std::span<const float> gradients) {
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    const StateRun& place = runs_[run];
    if (place.segment != segment) continue;
    put_run(static_cast<int>(run), gradients.subspan(static_cast<std::size_t>(place.offset),
                                                     static_cast<std::size_t>(place.numel)));
  }
}

void SwappedStates::put_run(int run, std::span<const float> gradients) {
  const StateRun& place = runs_[static_cast<std::size_t>(run)];
  const FileRange range{0, gradients_end(place)};
  const std::span<std::byte> memory = swap_.acquire(run, micro_step_.first() ? FileRange{} : range);
  const std::span<float> sum = floats(memory, 0, place.numel);
  if (micro_step_.first()) {
    copy_to(sum, gradients);
  } else {
    add_to(sum, gradients);
  }
  if (micro_step_.last()) optim::add_squares(sum, squares_);
  swap_.release(run, range);
}

}  // namespace dstrain::zero
