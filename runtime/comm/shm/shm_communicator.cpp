#include "runtime/comm/shm/shm_communicator.h"

#include <algorithm>

#include "runtime/comm/host_sum.h"
#include "runtime/comm/shm/segment_exchange.h"

namespace dstrain::comm {
namespace {

/// Up to this size an all_reduce takes one barrier: every rank adds up everything.
constexpr Bytes small_bytes = 16 * kibibyte;

}  // namespace

/// The rounds of an operation through slots: `total` units, `per_slot` of them in a round.
struct ShmCommunicator::Rounds {
  std::int64_t total;
  std::int64_t per_slot;
};

/// The part of a round's bytes that one rank sums.
struct ShmCommunicator::Part {
  Bytes begin;
  Bytes end;
};

/// An offset in a tensor, and the offset in the slot of the round that shows it.
struct ShmCommunicator::Offsets {
  Bytes in_tensor;
  Bytes in_slot;
};

ShmCommunicator::ShmCommunicator(std::shared_ptr<const Segment> segment,
                                 GroupBarrier::Options options)
    : HostCommunicator({options.rank, static_cast<int>(segment->members().size())}),
      segment_(std::move(segment)),
      memory_(segment_, options.rank),
      options_(std::move(options)),
      barrier_(segment_->group(), segment_->members(), options_),
      shown_(segment_->members().size()) {
  barrier_.announce({Operation::join, DType::u8, 0, 0});
  barrier_.agree();
}

/// The address where this rank reads the data of `rank`; `own` is its own tensor.
const std::byte* ShmCommunicator::seen(int rank, const std::byte* own, Offsets offsets) const {
  if (rank == this->rank()) return own + offsets.in_tensor;
  const std::byte* const tensor = shown_[static_cast<std::size_t>(rank)];
  return tensor == nullptr ? slot(rank) + offsets.in_slot : tensor + offsets.in_tensor;
}

ShmCommunicator::Part ShmCommunicator::part_of(int rank, Bytes bytes) const {
  const auto begin = [&](int r) {
    return r == size() ? bytes : bytes * r / size() / element_bytes_max * element_bytes_max;
  };
  return {begin(rank), begin(rank + 1)};
}

/// Returns the call with the peer as messages name it.
Call ShmCommunicator::named(Call call) const {
  if (!options_.names.empty()) call.peer = options_.names[static_cast<std::size_t>(call.peer)];
  return call;
}

/// Announces the operation and the location of `tensor`, unless the others read nothing of it.
void ShmCommunicator::announce(const Call& call, const HostView& tensor, Shows shows) {
  barrier_.announce(named(call));
  const Bytes offset = memory_.offset_of(tensor.data()).value_or(SharedTensor::staged);
  segment_->shared_tensor(rank()).in_heap[++operation_ % 2] =
      shows == Shows::tensor ? offset : SharedTensor::nothing;
}

/// Whether this rank's data goes through its slot.
bool ShmCommunicator::stages() const {
  return segment_->shared_tensor(rank()).in_heap[operation_ % 2] == SharedTensor::staged;
}

/// The first barrier; after it, the location of every rank's tensor is known.
void ShmCommunicator::agree() {
  barrier_.agree();
  any_staged_ = false;
  any_in_place_ = false;
  for (int r = 0; r < size(); ++r) {
    const Bytes offset = segment_->shared_tensor(r).in_heap[operation_ % 2];
    shown_[static_cast<std::size_t>(r)] = offset < 0 ? nullptr : segment_->heap(r).data() + offset;
    any_staged_ = any_staged_ || offset == SharedTensor::staged;
    any_in_place_ = any_in_place_ || offset >= 0;
  }
}

/// Runs an announced operation. In each round, a rank whose tensor is not in the segment calls
/// `fill(at, count)` for its slot, then all arrive and call `take(at, count)`. If there is no such
/// rank, one round does it all.
template <class Fill, class Take>
void ShmCommunicator::run_rounds(Rounds rounds, const Fill& fill, const Take& take) {
  std::int64_t step = rounds.per_slot;
  for (std::int64_t at = 0; at == 0 || at < rounds.total; at += step, ++round_) {
    if (stages()) fill(at, std::min(step, rounds.total - at));
    at == 0 ? agree() : barrier_.arrive_and_wait();
    if (!any_staged_) step = std::max<std::int64_t>(rounds.total, 1);
    take(at, std::min(step, rounds.total - at));
  }
  if (any_in_place_) barrier_.arrive_and_wait();  // no rank reads the tensors after this
}

void ShmCommunicator::run_all_gather(const Call& call, HostView shard, HostView whole) {
  announce(call, shard, Shows::tensor);
  const Bytes bytes = shard.bytes();
  const Writes writes = writes_for(whole.bytes());
  run_rounds(
      {bytes, slot_bytes},
      [&](Bytes at, Bytes count) { copy_bytes(shard.data() + at, slot(rank()), count); },
      [&](Bytes at, Bytes count) {
        for (int r = 0; r < size(); ++r) {
          copy_bytes(seen(r, shard.data(), {at, 0}), whole.data() + r * bytes + at, count, writes);
        }
      });
}

/// Bytes of each piece of a slot, which holds one per rank.
Bytes ShmCommunicator::piece_bytes() const {
  return slot_bytes / size() / element_bytes_max * element_bytes_max;
}

/// Copies elements `at` to `at + count` of each rank's part into this rank's slot, except its own.
void ShmCommunicator::fill_pieces(const HostView& parts, Bytes at, Bytes count) {
  const Bytes part = parts.bytes() / size();
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    copy_bytes(parts.data() + r * part + at, slot(rank()) + r * piece_bytes(), count);
  }
}

void ShmCommunicator::run_all_to_all(const Call& call, HostView parts, HostView received) {
  announce(call, parts, Shows::tensor);
  const Bytes part = parts.bytes() / size();
  const Writes writes = writes_for(received.bytes());
  run_rounds(
      {part, piece_bytes()}, [&](Bytes at, Bytes count) { fill_pieces(parts, at, count); },
      [&](Bytes at, Bytes count) {
        const Offsets own_part{rank() * part + at, rank() * piece_bytes()};
        for (int r = 0; r < size(); ++r) {
          copy_bytes(seen(r, parts.data(), own_part), received.data() + r * part + at, count,
                     writes);
        }
      });
}

/// A slot holds a piece for each rank; a rank's own piece goes to its sum directly.
void ShmCommunicator::run_reduce_scatter(const Call& call, HostView whole, HostView shard) {
  announce(call, whole, Shows::tensor);
  const Writes writes = writes_for(shard.bytes());
  std::vector<const std::byte*> terms(static_cast<std::size_t>(size()));
  run_rounds(
      {shard.bytes(), piece_bytes()}, [&](Bytes at, Bytes count) { fill_pieces(whole, at, count); },
      [&](Bytes at, Bytes count) {
        const Offsets own_part{rank() * shard.bytes() + at, rank() * piece_bytes()};
        for (int r = 0; r < size(); ++r) {
          terms[static_cast<std::size_t>(r)] = seen(r, whole.data(), own_part);
        }
        add_in_rank_order(terms, part_in_bytes(shard, at, count), writes);
      });
}

void ShmCommunicator::run_all_reduce(const Call& call, HostView values) {
  values.bytes() <= small_bytes ? reduce_small(call, values) : reduce_large(call, values);
}

void ShmCommunicator::reduce_small(const Call& call, const HostView& values) {
  announce(call, values, Shows::nothing);
  copy_bytes(values.data(), slot(rank()), values.bytes());
  agree();
  std::vector<const std::byte*> terms;
  terms.reserve(static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) terms.push_back(slot(r));
  add_in_rank_order(terms, values);
  ++round_;
}

/// Every rank sums one part of a round's elements and writes the sum over its own term, which no
/// other rank reads: in its tensor and, unless others read that, in its slot.
void ShmCommunicator::reduce_large(const Call& call, const HostView& values) {
  announce(call, values, Shows::tensor);
  const Writes writes = writes_for(values.bytes());
  run_rounds(
      {values.bytes(), slot_bytes},
      [&](Bytes at, Bytes count) {
        const Part own = part_of(rank(), count);
        copy_bytes(values.data() + at, slot(rank()), own.begin);
        copy_bytes(values.data() + at + own.end, slot(rank()) + own.end, count - own.end);
      },
      [&](Bytes at, Bytes count) {
        sum_part(values, at, part_of(rank(), count));
        barrier_.arrive_and_wait();
        for (int r = 0; r < size(); ++r) {
          const Part part = part_of(r, count);
          copy_bytes(seen(r, values.data(), {at + part.begin, part.begin}),
                     values.data() + at + part.begin, part.end - part.begin, writes);
        }
      });
}

void ShmCommunicator::sum_part(const HostView& values, Bytes at, Part part) {
  std::vector<const std::byte*> terms;
  terms.reserve(static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) {
    terms.push_back(seen(r, values.data(), {at + part.begin, part.begin}));
  }
  const HostView sum = part_in_bytes(values, at + part.begin, part.end - part.begin);
  add_in_rank_order(terms, sum);
  if (stages()) copy_bytes(sum.data(), slot(rank()) + part.begin, sum.bytes());
}

void ShmCommunicator::run_broadcast(const Call& call, HostView values) {
  const bool root = rank() == call.peer;
  announce(call, values, root ? Shows::tensor : Shows::nothing);
  run_rounds(
      {values.bytes(), slot_bytes},
      [&](Bytes at, Bytes count) { copy_bytes(values.data() + at, slot(rank()), count); },
      [&](Bytes at, Bytes count) {
        copy_bytes(seen(call.peer, values.data(), {at, 0}), values.data() + at, count,
                   writes_for(values.bytes()));
      });
}

void ShmCommunicator::run_send(const Call& call, HostView values) {
  barrier_.announce_pairwise(named(call));
  Channel& channel = segment_->channel(rank(), call.peer);
  for (Bytes at = 0; at == 0 || at < values.bytes(); at += channel_slot_bytes) {
    const std::uint32_t piece = channel.sent.count;
    barrier_.wait_for_peer(channel.received, piece - 1, call.peer);  // one of the two slots is free
    channel.calls[piece % 2] = named(call);
    copy_bytes(values.data() + at, segment_->channel_slot(rank(), call.peer, piece),
               std::min(channel_slot_bytes, values.bytes() - at));
    channel.sent.increment();
  }
}

void ShmCommunicator::run_receive(const Call& call, HostView values) {
  barrier_.announce_pairwise(named(call));
  Channel& channel = segment_->channel(call.peer, rank());
  for (Bytes at = 0; at == 0 || at < values.bytes(); at += channel_slot_bytes) {
    const std::uint32_t piece = channel.received.count;
    barrier_.wait_for_peer(channel.sent, piece + 1, call.peer);
    barrier_.check_message(channel.calls[piece % 2]);
    copy_bytes(segment_->channel_slot(call.peer, rank(), piece), values.data() + at,
               std::min(channel_slot_bytes, values.bytes() - at));
    channel.received.increment();
  }
}

std::unique_ptr<Communicator> make_shm_communicator(std::shared_ptr<const Segment> segment,
                                                    GroupBarrier::Options options) {
  return std::make_unique<ShmCommunicator>(std::move(segment), std::move(options));
}

std::unique_ptr<Communicator> ShmCommunicator::split(Split split) {
  const SplitPlan plan = plan_split(gather_plain(split), rank());
  return make_shm_communicator(
      split_segment(
          plan, [&](const SegmentTicket& own) { return gather_plain(own); },
          default_heap_bytes(static_cast<int>(plan.members.size())), options_.timeout_seconds),
      {.rank = plan.rank, .timeout_seconds = options_.timeout_seconds});
}

}  // namespace dstrain::comm
