#include "offload/record_swap.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/error.h"

namespace dstrain::offload {
namespace {

Bytes largest(std::span<const Bytes> sizes) {
  return *std::ranges::max_element(sizes);
}

}  // namespace

Bytes RecordSwap::file_bytes(std::span<const Bytes> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), Bytes{0});
}

Bytes RecordSwap::buffer_bytes(std::span<const Bytes> sizes, int buffers) {
  return sizes.empty() ? 0 : buffers * largest(sizes);
}

RecordSwap::RecordSwap(AsyncFileIo& io,
                       const std::filesystem::path& directory,
                       std::vector<Bytes> sizes,
                       Options options,
                       MemoryResource& memory,
                       StreamView stream)
    : io_(io),
      sizes_(std::move(sizes)),
      options_(options),
      file_(directory, file_bytes(sizes_)),
      memory_(buffer_bytes(sizes_, options.buffers), memory, stream),
      slots_(static_cast<std::size_t>(options.buffers)) {
  std::exclusive_scan(sizes_.begin(), sizes_.end(), std::back_inserter(offsets_), Bytes{0});
  const auto each = static_cast<std::size_t>(largest(sizes_));
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].memory = memory_.bytes().subspan(i * each, each);
  }
  io_.register_memory(memory_.bytes());
}

RecordSwap::~RecordSwap() {
  for (Slot& slot : slots_) {
    try {
      settle(slot);
    } catch (const Error&) {  // a destructor has nobody to report it to
    }
  }
  io_.unregister_memory(memory_.bytes());
}

RecordSwap::Slot* RecordSwap::find(int record) {
  const auto slot = std::ranges::find_if(
      slots_, [&](const Slot& each) { return each.state != State::free && each.record == record; });
  return slot == slots_.end() ? nullptr : &*slot;
}

RecordSwap::Slot* RecordSwap::oldest(State state) {
  Slot* found = nullptr;
  for (Slot& slot : slots_) {
    if (slot.state == state && (found == nullptr || slot.turn < found->turn)) found = &slot;
  }
  return found;
}

/// Waits for the I/O of a slot that nobody uses, and frees it.
void RecordSwap::settle(Slot& slot) {
  slot.state = State::free;
  if (const auto ticket = std::exchange(slot.ticket, std::nullopt)) io_.wait(*ticket);
}

/// Returns a free slot, if necessary after its write is done.
RecordSwap::Slot* RecordSwap::free_slot() {
  if (Slot* const slot = oldest(State::free)) return slot;
  Slot* const slot = oldest(State::writing);
  if (slot != nullptr) settle(*slot);
  return slot;
}

/// Returns a slot that is free without waiting.
RecordSwap::Slot* RecordSwap::slot_at_hand() {
  for (Slot& slot : slots_) {
    if (slot.state == State::writing && io_.done(slot.ticket.value())) settle(slot);
  }
  return oldest(State::free);
}

void RecordSwap::read(Slot& slot, int record, FileRange range, State state) {
  const auto index = static_cast<std::size_t>(record);
  DSTRAIN_CHECK(0 <= range.begin && range.begin <= range.end && range.end <= sizes_.at(index),
                "bytes {} to {} of record {}", range.begin, range.end, record);
  slot.state = state;
  slot.record = record;
  slot.range = range;
  slot.turn = ++turn_;
  if (range.begin == range.end) return;
  slot.ticket = io_.read(file_, offsets_[index] + range.begin,
                         slot.memory.subspan(static_cast<std::size_t>(range.begin),
                                             static_cast<std::size_t>(range.end - range.begin)));
}

void RecordSwap::expect(int record, FileRange range) {
  const std::lock_guard lock(mutex_);
  if (find(record) != nullptr) return;
  if (Slot* const slot = free_slot()) read(*slot, record, range, State::expected);
}

void RecordSwap::expect_if_free(int record, FileRange range) {
  const std::lock_guard lock(mutex_);
  if (find(record) != nullptr) return;
  if (Slot* const slot = slot_at_hand()) read(*slot, record, range, State::expected);
}

std::span<std::byte> RecordSwap::take(int record, FileRange range) {
  std::unique_lock lock(mutex_);
  Slot* slot = nullptr;
  while (slot == nullptr) {
    Slot* const own = find(record);
    if (own != nullptr && own->state == State::expected && own->range == range) {
      own->state = State::taken;
      return own->memory;
    }
    if (own == nullptr || own->state != State::taken) {
      if (own != nullptr) settle(*own);  // being written, or holds another range
      slot = slot_to_take();
    }
    if (slot == nullptr) released_.wait(lock);
  }
  read(*slot, record, range, State::taken);
  return slot->memory;
}

/// Returns a free slot, or one whose record was expected but not taken.
RecordSwap::Slot* RecordSwap::slot_to_take() {
  if (Slot* const slot = free_slot()) return slot;
  Slot* const slot = oldest(State::expected);
  if (slot != nullptr) settle(*slot);
  return slot;
}

void RecordSwap::wait(int record) {
  std::optional<Ticket> ticket;
  {
    const std::lock_guard lock(mutex_);
    Slot* const slot = find(record);
    DSTRAIN_CHECK(slot != nullptr && slot->state == State::taken, "record {}", record);
    ticket = std::exchange(slot->ticket, std::nullopt);
  }
  if (ticket) io_.wait(*ticket);
}

std::span<std::byte> RecordSwap::acquire(int record, FileRange range) {
  const std::span<std::byte> memory = take(record, range);
  wait(record);
  return memory;
}

void RecordSwap::release(int record, FileRange written, int to) {
  const std::lock_guard lock(mutex_);
  Slot* const slot = find(record);
  DSTRAIN_CHECK(slot != nullptr && slot->state == State::taken, "record {}", record);
  released_.notify_all();  // even if the code below throws: the buffer is free
  settle(*slot);           // after a failure, nobody may have waited for it
  if (Slot* const replaced = find(to)) {
    DSTRAIN_CHECK(replaced->state == State::writing, "record {} is in use", to);
    settle(*replaced);
  }
  slot->turn = ++turn_;
  if (written.begin == written.end) return;
  slot->state = State::writing;
  slot->record = to;
  const Bytes offset = offsets_[static_cast<std::size_t>(to)];
  slot->ticket =
      io_.write(file_, offset + written.begin,
                slot->memory.subspan(static_cast<std::size_t>(written.begin),
                                     static_cast<std::size_t>(written.end - written.begin)));
  if (!options_.write_behind) settle(*slot);
}

}  // namespace dstrain::offload
