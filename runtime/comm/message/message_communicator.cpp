#include "runtime/comm/message/message_communicator.h"

#include <algorithm>
#include <array>

#include "runtime/comm/host_sum.h"
#include "runtime/comm/split_plan.h"

namespace dstrain::comm {
namespace {

/// Total bytes of all ranks up to which an all_reduce is one step.
constexpr Bytes one_step_bytes = 256 * kibibyte;
/// Bytes below which the root of a broadcast sends to every rank itself.
constexpr Bytes small_broadcast_bytes = 64 * kibibyte;
/// Bytes from all other ranks that a reduce_scatter stages, in two rounds.
constexpr Bytes staged_bytes = 8 * mebibyte;
/// Bytes from one other rank in a round, at least.
constexpr Bytes piece_bytes_min = 4 * kibibyte;

}  // namespace

MessageCommunicator::MessageCommunicator(Unconnected /*unconnected*/,
                                         Lines lines,
                                         double timeout_seconds)
    : HostCommunicator({lines.transport->rank(), lines.transport->size()}),
      peers_(std::move(lines.transport), std::move(lines.control), timeout_seconds),
      timeout_seconds_(timeout_seconds) {}

MessageCommunicator::MessageCommunicator(Lines lines, double timeout_seconds)
    : MessageCommunicator(Unconnected{}, std::move(lines), timeout_seconds) {
  peers_.transport().connect(other_ranks());
}

std::vector<int> MessageCommunicator::other_ranks() const {
  std::vector<int> others;
  for (int other = 0; other < size(); ++other) {
    if (other != rank()) others.push_back(other);
  }
  return others;
}

template <class Run>
void MessageCommunicator::operate(Run&& run) {
  try {
    run();
  } catch (...) {
    give_up();
    throw;
  }
}

void MessageCommunicator::run_all_gather(const Call& call, HostView shard, HostView whole) {
  operate([&] {
    peers_.agree(call);
    copy_bytes(shard.data(), whole.data() + rank() * shard.bytes(), shard.bytes());
    gather(whole.data(), shard.bytes());
  });
}

void MessageCommunicator::run_reduce_scatter(const Call& call, HostView whole, HostView shard) {
  operate([&] {
    peers_.agree(call);
    if (shard.numel() > 0) reduce(whole, shard);
  });
}

/// The remainder that the ranks cannot share evenly, less than an element each, is added like small
/// values.
void MessageCommunicator::run_all_reduce(const Call& call, HostView values) {
  operate([&] {
    peers_.agree(call);
    const std::int64_t numel = values.numel();
    const std::int64_t part = values.bytes() * size() <= one_step_bytes ? 0 : numel / size();
    const std::int64_t done = part * size();
    if (part > 0) {
      const HostView own = values.part(rank() * part, {part});
      reduce(values.part(0, {done}), own);
      gather(values.data(), own.bytes());
    }
    if (done < numel) reduce_small(values.part(done, {numel - done}));
  });
}

/// Adds up everything on every rank.
void MessageCommunicator::reduce_small(const HostView& values) {
  const Bytes bytes = values.bytes();
  std::vector<std::byte> all(static_cast<std::size_t>(bytes * size()));
  copy_bytes(values.data(), all.data() + rank() * bytes, bytes);
  gather(all.data(), bytes);
  std::vector<const std::byte*> terms;
  terms.reserve(static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) terms.push_back(all.data() + r * bytes);
  add_in_rank_order(terms, values);
}

void MessageCommunicator::run_all_to_all(const Call& call, HostView parts, HostView received) {
  operate([&] {
    peers_.agree(call);
    swap_parts(parts.data(), received.data(), parts.bytes() / size());
  });
}

void MessageCommunicator::swap_parts(const std::byte* parts,
                                     std::byte* received,
                                     Bytes part_bytes) {
  Peers::Batch batch;
  for (int step = 1; step < size(); ++step) {
    const int source = (rank() - step + size()) % size();
    const int target = (rank() + step) % size();
    peers_.receive(batch, source, received + source * part_bytes, part_bytes);
    peers_.send(batch, target, parts + target * part_bytes, part_bytes);
  }
  copy_bytes(parts + rank() * part_bytes, received + rank() * part_bytes, part_bytes);
  peers_.finish(batch);
}

void MessageCommunicator::run_broadcast(const Call& call, HostView values) {
  operate([&] {
    peers_.agree(call);
    spread(values.data(), values.bytes(), call.peer);
  });
}

/// Sends a part of many bytes to each rank; the ranks then gather the others' parts.
void MessageCommunicator::spread(std::byte* values, Bytes bytes, int root) {
  const Bytes part = bytes <= small_broadcast_bytes ? 0 : bytes / size();
  if (part > 0) {
    Peers::Batch batch;
    for (int r = 0; r < size() && rank() == root; ++r) {
      if (r != rank()) peers_.send(batch, r, values + r * part, part);
    }
    if (rank() != root) peers_.receive(batch, root, values + rank() * part, part);
    peers_.finish(batch);
    gather(values, part);
  }
  send_to_all(values + part * size(), bytes - part * size(), root);
}

void MessageCommunicator::send_to_all(std::byte* values, Bytes bytes, int root) {
  Peers::Batch batch;
  for (int r = 0; r < size() && rank() == root; ++r) {
    if (r != root) peers_.send(batch, r, values, bytes);
  }
  if (rank() != root) peers_.receive(batch, root, values, bytes);
  peers_.finish(batch);
}

void MessageCommunicator::run_send(const Call& call, HostView values) {
  operate([&] { peers_.send_alone(call, values.data(), values.bytes()); });
}

void MessageCommunicator::run_receive(const Call& call, HostView values) {
  operate([&] { peers_.receive_alone(call, values.data(), values.bytes()); });
}

/// Rank r sends to r+1, r+2, ..., so that the ranks never all send to the same one.
void MessageCommunicator::gather(std::byte* whole, Bytes shard_bytes) {
  Peers::Batch batch;
  for (int step = 1; step < size(); ++step) {
    const int source = (rank() - step + size()) % size();
    peers_.receive(batch, source, whole + source * shard_bytes, shard_bytes);
  }
  for (int step = 1; step < size(); ++step) {
    peers_.send(batch, (rank() + step) % size(), whole + rank() * shard_bytes, shard_bytes);
  }
  peers_.finish(batch);
}

/// Works in rounds; one round is in transit while the previous one is added up.
void MessageCommunicator::reduce(const HostView& whole, const HostView& shard) {
  const std::int64_t others = size() - 1;
  const Bytes bytes = shard.bytes();
  if (others == 0) return copy_bytes(whole.data(), shard.data(), bytes);
  const Bytes fitting = staged_bytes / 2 / others / element_bytes_max * element_bytes_max;
  const Bytes piece = std::min(bytes, std::max(piece_bytes_min, fitting));
  staging_.resize(static_cast<std::size_t>(2 * others * piece));
  std::array<Round, 2> rounds;
  for (Bytes at = 0, i = 0; at < bytes + piece; at += piece, ++i) {
    Round& next = rounds[static_cast<std::size_t>(i % 2)];
    Round& last = rounds[static_cast<std::size_t>((i + 1) % 2)];
    if (at < bytes) {
      next.at = at;
      next.bytes = std::min(piece, bytes - at);
      next.staged = staging_.data() + i % 2 * others * piece;
      start(next, whole.data(), bytes);
    }
    if (at > 0) add_up(last, whole.data() + rank() * bytes, shard);
  }
}

void MessageCommunicator::start(Round& round, const std::byte* whole, Bytes shard_bytes) {
  for (int r = 0, i = 0; r < size(); ++r) {
    if (r == rank()) continue;
    peers_.receive(round.received, r, round.staged + i++ * round.bytes, round.bytes);
  }
  for (int step = 1; step < size(); ++step) {
    const int target = (rank() + step) % size();
    peers_.send(round.sent, target, whole + target * shard_bytes + round.at, round.bytes);
  }
}

void MessageCommunicator::add_up(Round& round, const std::byte* own, const HostView& shard) {
  peers_.finish(round.received);
  std::vector<const std::byte*> terms;
  terms.reserve(static_cast<std::size_t>(size()));
  const std::byte* staged = round.staged;
  for (int r = 0; r < size(); ++r) {
    terms.push_back(r == rank() ? own + round.at : staged);
    if (r != rank()) staged += round.bytes;
  }
  add_in_rank_order(terms, part_in_bytes(shard, round.at, round.bytes));
  peers_.finish(round.sent);
}

MessageCommunicator::SplitLines MessageCommunicator::split_lines(Split split) {
  struct Ask {
    Split split;
    std::int64_t group = 0;
  };
  std::vector<Split> splits;
  std::int64_t group = 0;
  for (const Ask& ask : peers_.control().gather(Ask{split, peers_.transport().next_group()})) {
    splits.push_back(ask.split);
    group = std::max(group, ask.group);
  }
  SplitPlan plan = plan_split(splits, rank());
  auto control = peers_.control().split(split);
  auto transport = peers_.transport().split({plan.members, plan.rank, group, splits_++});
  return {{std::move(transport), std::move(control)}, std::move(plan.members)};
}

/// Waits for all ranks, so that one that leaves afterwards takes away nothing that a subgroup needs
/// to connect.
void MessageCommunicator::end_split() {
  peers_.agree({Operation::split, DType::u8, 0, 0});
}

std::unique_ptr<Communicator> MessageCommunicator::split(Split split) {
  auto part = std::make_unique<MessageCommunicator>(split_lines(split).lines, timeout_seconds_);
  end_split();
  return part;
}

}  // namespace dstrain::comm
