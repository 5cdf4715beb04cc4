#include "runtime/comm/message/message_communicator.h"

#include <algorithm>
#include <array>

#include "runtime/comm/host_sum.h"
#include "runtime/comm/split_plan.h"

namespace dstrain::comm {
namespace {

/// Floats of all ranks together below which an all_reduce is one step.
constexpr std::int64_t one_step_numel = 65'536;
/// Bytes below which the root of a broadcast sends to everyone itself.
constexpr Bytes small_broadcast_bytes = 64 * kibibyte;
/// Floats of all others that a reduce_scatter stages, in two rounds.
constexpr std::int64_t staged_numel = 2 * mebibyte;
constexpr std::int64_t piece_numel_min = 1024;

float* floats(const HostView& view) {
  return reinterpret_cast<float*>(view.data());
}

std::byte* bytes_at(float* values) {
  return reinterpret_cast<std::byte*>(values);
}

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
    if (shard.numel() > 0) reduce(floats(whole), floats(shard), shard.numel());
  });
}

/// What the ranks cannot share evenly, less than an element each, is added like small values.
void MessageCommunicator::run_all_reduce(const Call& call, HostView values) {
  operate([&] {
    peers_.agree(call);
    float* const own = floats(values);
    const std::int64_t numel = values.numel();
    const std::int64_t part = numel * size() <= one_step_numel ? 0 : numel / size();
    if (part > 0) {
      reduce(own, own + rank() * part, part);
      gather(bytes_at(own), part * float_bytes);
    }
    const std::int64_t done = part * size();
    if (done < numel) reduce_small(own + done, numel - done);
  });
}

/// Every rank adds up everything.
void MessageCommunicator::reduce_small(float* values, std::int64_t numel) {
  std::vector<float> all(static_cast<std::size_t>(numel * size()));
  std::copy_n(values, numel, all.data() + rank() * numel);
  gather(bytes_at(all.data()), numel * float_bytes);
  std::vector<const float*> terms;
  terms.reserve(static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) terms.push_back(all.data() + r * numel);
  add_in_rank_order(terms, values, numel);
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

/// Each rank gets a part of many bytes, and then gathers the others' parts.
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

/// Rank r sends to r+1, r+2, ...: at no time do all send to one.
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

/// In rounds, each under way while the one before is added up.
void MessageCommunicator::reduce(const float* whole, float* shard, std::int64_t numel) {
  const std::int64_t others = size() - 1;
  if (others == 0) return copy_bytes(whole, shard, numel * float_bytes);
  const std::int64_t piece = std::min(numel, std::max(piece_numel_min, staged_numel / 2 / others));
  staging_.resize(static_cast<std::size_t>(2 * others * piece));
  std::array<Round, 2> rounds;
  for (std::int64_t at = 0, i = 0; at < numel + piece; at += piece, ++i) {
    Round& next = rounds[static_cast<std::size_t>(i % 2)];
    Round& last = rounds[static_cast<std::size_t>((i + 1) % 2)];
    if (at < numel) {
      next.at = at;
      next.numel = std::min(piece, numel - at);
      next.staged = staging_.data() + i % 2 * others * piece;
      start(next, whole, numel);
    }
    if (at > 0) add_up(last, whole + rank() * numel, shard);
  }
}

void MessageCommunicator::start(Round& round, const float* whole, std::int64_t numel) {
  for (int r = 0, i = 0; r < size(); ++r) {
    if (r == rank()) continue;
    peers_.receive(round.received, r, round.staged + i++ * round.numel, round.numel * float_bytes);
  }
  for (int step = 1; step < size(); ++step) {
    const int target = (rank() + step) % size();
    peers_.send(round.sent, target, whole + target * numel + round.at, round.numel * float_bytes);
  }
}

void MessageCommunicator::add_up(Round& round, const float* own, float* shard) {
  peers_.finish(round.received);
  std::vector<const float*> terms;
  terms.reserve(static_cast<std::size_t>(size()));
  const float* staged = round.staged;
  for (int r = 0; r < size(); ++r) {
    terms.push_back(r == rank() ? own + round.at : staged);
    if (r != rank()) staged += round.numel;
  }
  add_in_rank_order(terms, shard + round.at, round.numel);
  peers_.finish(round.sent);
}

MessageCommunicator::Part MessageCommunicator::split_lines(Split split) {
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

/// Who leaves after it takes from no part what its ranks still meet by.
void MessageCommunicator::end_split() {
  peers_.agree({Operation::split, DType::u8, 0, 0});
}

std::unique_ptr<Communicator> MessageCommunicator::split(Split split) {
  auto part = std::make_unique<MessageCommunicator>(split_lines(split).lines, timeout_seconds_);
  end_split();
  return part;
}

}  // namespace dstrain::comm
