#include "runtime/comm/shm/shm_communicator.h"

#include <algorithm>

#include "runtime/comm/bytes.h"
#include "runtime/comm/rank_order_sum.h"

namespace dstrain::comm {
namespace {

/// Below this an all_reduce is one tick: every rank adds up everything.
constexpr std::int64_t small_numel = 4096;

constexpr std::int64_t slot_numel = slot_bytes / size_of(DType::f32);

float* floats(std::byte* bytes) {
  return reinterpret_cast<float*>(bytes);
}

constexpr Bytes bytes_of_floats(std::int64_t numel) {
  return numel * size_of(DType::f32);
}

}  // namespace

ShmCommunicator::ShmCommunicator(Segment segment, Meeting::Options options)
    : HostCommunicator({options.rank, static_cast<int>(segment.members().size())}),
      segment_(std::move(segment)),
      options_(options),
      meeting_(segment_.group(), segment_.members(), options) {
  meeting_.announce({Operation::join, DType::u8, 0, 0});
  meeting_.meet();
}

void ShmCommunicator::meet_or_tick(bool first) {
  first ? meeting_.meet() : meeting_.tick();
}

const float* ShmCommunicator::slot_floats(int rank) const {
  return floats(segment_.slot(rank, round_));
}

void ShmCommunicator::run_all_gather(const Call& call, TensorView shard, TensorView whole) {
  meeting_.announce(call);
  const Bytes bytes = shard.bytes();
  for (Bytes at = 0; at == 0 || at < bytes; at += slot_bytes, ++round_) {
    const Bytes count = std::min(slot_bytes, bytes - at);
    copy_bytes(shard.data() + at, segment_.slot(rank(), round_), count);
    meet_or_tick(at == 0);
    for (int r = 0; r < size(); ++r) {
      const std::byte* const from = r == rank() ? shard.data() + at : segment_.slot(r, round_);
      copy_bytes(from, whole.data() + r * bytes + at, count);
    }
  }
}

/// A slot holds a piece for each rank; a rank's own piece goes to its sum directly.
void ShmCommunicator::run_reduce_scatter(const Call& call, TensorView whole, TensorView shard) {
  meeting_.announce(call);
  const std::int64_t numel = shard.numel();
  const std::int64_t piece = slot_numel / size();
  const float* const own = floats(whole.data());
  std::vector<const float*> terms(static_cast<std::size_t>(size()));
  for (std::int64_t at = 0; at == 0 || at < numel; at += piece, ++round_) {
    const std::int64_t count = std::min(piece, numel - at);
    float* const slot = floats(segment_.slot(rank(), round_));
    for (int r = 0; r < size(); ++r) {
      if (r != rank()) copy_bytes(own + r * numel + at, slot + r * piece, bytes_of_floats(count));
    }
    meet_or_tick(at == 0);
    for (int r = 0; r < size(); ++r) {
      terms[static_cast<std::size_t>(r)] =
          r == rank() ? own + r * numel + at : slot_floats(r) + rank() * piece;
    }
    add_in_rank_order(terms, floats(shard.data()) + at, count);
  }
}

void ShmCommunicator::run_all_reduce(const Call& call, TensorView values) {
  meeting_.announce(call);
  auto* const own = floats(values.data());
  values.numel() <= small_numel ? reduce_small(own, values.numel())
                                : reduce_large(own, values.numel());
}

void ShmCommunicator::reduce_small(float* values, std::int64_t numel) {
  copy_bytes(values, segment_.slot(rank(), round_), bytes_of_floats(numel));
  meeting_.meet();
  std::vector<const float*> terms;
  for (int r = 0; r < size(); ++r) terms.push_back(slot_floats(r));
  if (numel > 0) add_in_rank_order(terms, values, numel);
  ++round_;
}

void ShmCommunicator::reduce_large(float* values, std::int64_t numel) {
  for (std::int64_t at = 0; at < numel; at += slot_numel, ++round_) {
    reduce_round(values + at, std::min(slot_numel, numel - at), at == 0);
  }
}

/// Every rank sums one part of the slot's elements and shows the sum in its own slot, in the place
/// of its own term, which nobody reads.
void ShmCommunicator::reduce_round(float* values, std::int64_t numel, bool first) {
  float* const slot = floats(segment_.slot(rank(), round_));
  const auto begin = [&](int r) {
    return numel * r / size();
  };
  const std::int64_t own_begin = begin(rank());
  const std::int64_t own_end = begin(rank() + 1);
  copy_bytes(values, slot, bytes_of_floats(own_begin));
  copy_bytes(values + own_end, slot + own_end, bytes_of_floats(numel - own_end));
  meet_or_tick(first);
  std::vector<const float*> terms;
  for (int r = 0; r < size(); ++r) {
    terms.push_back((r == rank() ? values : slot_floats(r)) + own_begin);
  }
  add_in_rank_order(terms, values + own_begin, own_end - own_begin);
  copy_bytes(values + own_begin, slot + own_begin, bytes_of_floats(own_end - own_begin));
  meeting_.tick();
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    copy_bytes(slot_floats(r) + begin(r), values + begin(r),
               bytes_of_floats(begin(r + 1) - begin(r)));
  }
}

void ShmCommunicator::run_broadcast(const Call& call, TensorView values) {
  meeting_.announce(call);
  for (Bytes at = 0; at == 0 || at < values.bytes(); at += slot_bytes, ++round_) {
    const Bytes count = std::min(slot_bytes, values.bytes() - at);
    std::byte* const slot = segment_.slot(call.peer, round_);
    if (rank() == call.peer) copy_bytes(values.data() + at, slot, count);
    meet_or_tick(at == 0);
    if (rank() != call.peer) copy_bytes(slot, values.data() + at, count);
  }
}

void ShmCommunicator::run_send(const Call& call, TensorView values) {
  meeting_.announce_pairwise(call);
  Channel& channel = segment_.channel(rank(), call.peer);
  for (Bytes at = 0; at == 0 || at < values.bytes(); at += channel_slot_bytes) {
    const std::uint32_t piece = channel.sent.count;
    meeting_.wait_for_peer(channel.received, piece - 1, call.peer);  // one of two slots is free
    channel.calls[piece % 2] = call;
    copy_bytes(values.data() + at, segment_.channel_slot(rank(), call.peer, piece),
               std::min(channel_slot_bytes, values.bytes() - at));
    channel.sent.raise();
  }
}

void ShmCommunicator::run_receive(const Call& call, TensorView values) {
  meeting_.announce_pairwise(call);
  Channel& channel = segment_.channel(call.peer, rank());
  for (Bytes at = 0; at == 0 || at < values.bytes(); at += channel_slot_bytes) {
    const std::uint32_t piece = channel.received.count;
    meeting_.wait_for_peer(channel.sent, piece + 1, call.peer);
    meeting_.check_message(channel.calls[piece % 2]);
    copy_bytes(segment_.channel_slot(call.peer, rank(), piece), values.data() + at,
               std::min(channel_slot_bytes, values.bytes() - at));
    channel.received.raise();
  }
}

void ShmCommunicator::run_barrier(const Call& call) {
  meeting_.announce(call);
  meeting_.meet();
}

}  // namespace dstrain::comm
