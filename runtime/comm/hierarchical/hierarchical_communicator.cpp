#include "runtime/comm/hierarchical/hierarchical_communicator.h"

#include <algorithm>
#include <deque>

#include "runtime/comm/hierarchical/linked_ranks.h"
#include "runtime/comm/host_sum.h"

namespace dstrain::comm {
namespace {

/// How long to wait for the cause of a failure, after this node has failed.
constexpr double word_seconds = 1.5;

int index_in(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::ranges::lower_bound(ranks, rank) - ranks.begin());
}

HostView as_bytes(std::byte* data, Bytes bytes) {
  return {data, DType::u8, Shape{bytes}};
}

/// Bytes of a chunk: large enough for the network, small enough that all nodes soon have one.
constexpr Bytes chunk_bytes = mebibyte;

/// Up to this many nodes with one rank each, all are connected with all: sending each a message
/// takes less time than a ring.
constexpr int flat_nodes_max = 16;

/// A range of the bytes of a chunk.
struct Range {
  Bytes begin = 0;
  Bytes end = 0;
  [[nodiscard]] Bytes bytes() const { return std::max<Bytes>(0, end - begin); }
};

Range common(const Range& left, const Range& right) {
  return {std::max(left.begin, right.begin), std::min(left.end, right.end)};
}

Range piece(int index, Bytes bytes) {
  return {index * bytes, (index + 1) * bytes};
}

}  // namespace

HierarchicalCommunicator::HierarchicalCommunicator(Lines lines,
                                                   std::unique_ptr<Communicator> within,
                                                   NodeMap map,
                                                   double timeout_seconds)
    : MessageCommunicator(Unconnected{}, std::move(lines), timeout_seconds),
      within_(std::move(within)),
      map_(std::move(map)),
      own_node_(map_.node_of(rank())),
      local_rank_(index_in(node(own_node_), rank())) {
  DSTRAIN_CHECK(map_.contiguous(), "the ranks of a node are not consecutive");
  DSTRAIN_CHECK(within_->size() == ranks_of(own_node_) && within_->rank() == local_rank_,
                "rank {} of {} within the node, {} of {} expected", within_->rank(),
                within_->size(), local_rank_, ranks_of(own_node_));
  peers().transport().connect(linked_ranks(map_, rank()));
}

bool HierarchicalCommunicator::on_own_node(int rank) const {
  return rank >= node(own_node_).front() && rank <= node(own_node_).back();
}

int HierarchicalCommunicator::local_rank_of(int rank) const {
  return rank - node(own_node_).front();
}

void HierarchicalCommunicator::abort() noexcept {
  MessageCommunicator::abort();
  within_->abort();
}

/// Looks for the cause of a failure: the other ranks of the node are released without one.
void HierarchicalCommunicator::run_within(FunctionRef<void()> run) {
  try {
    run();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::aborted) {
      peers().look_for_cause(word_seconds);
      peers().fail_all(ErrorCode::aborted, error.what());
    }
    peers().fail_all(error.code(), fmt::format("{}: {}", peers().doing(), error.what()));
  }
}

/// Passes shards around the ring of nodes: each node forwards what it receives to the next, until
/// all nodes have all shards.
void HierarchicalCommunicator::gather(std::byte* whole, Bytes shard_bytes) {
  if (shard_bytes == 0) return;
  std::vector<Peers::Batch> received(map_.nodes.size());
  Peers::Batch sent;
  const auto source_of = [&](int step) {
    return (own_node_ - step + nodes()) % nodes();
  };
  for (int step = 1; step < nodes(); ++step) {
    receive_shards(received[static_cast<std::size_t>(step)], whole, shard_bytes, source_of(step));
  }
  for (int step = 0; step < nodes(); ++step) {
    peers().finish(received[static_cast<std::size_t>(step)]);
    if (step + 1 < nodes()) send_shards(sent, whole, shard_bytes, source_of(step));
    share(whole, shard_bytes, source_of(step));
  }
  peers().finish(sent);
}

/// Starts to receive from the previous node this rank's share of one node's shards.
void HierarchicalCommunicator::receive_shards(Peers::Batch& batch,
                                              std::byte* whole,
                                              Bytes shard_bytes,
                                              int source_node) {
  const int previous = (own_node_ + nodes() - 1) % nodes();
  for (int i = local_rank_; i < ranks_of(source_node); i += ranks_of(own_node_)) {
    const int owner = node(source_node)[static_cast<std::size_t>(i)];
    peers().receive(batch, bearer(previous, i), whole + owner * shard_bytes, shard_bytes);
  }
}

/// Starts to send the same to the next node.
void HierarchicalCommunicator::send_shards(Peers::Batch& batch,
                                           std::byte* whole,
                                           Bytes shard_bytes,
                                           int source_node) {
  for (int i = local_rank_; i < ranks_of(source_node); i += ranks_of(own_node_)) {
    const int owner = node(source_node)[static_cast<std::size_t>(i)];
    peers().send(batch, bearer(next_node(), i), whole + owner * shard_bytes, shard_bytes);
  }
}

/// Shows the shards of one node, which the ranks of this one hold in turn, to all of them.
void HierarchicalCommunicator::share(std::byte* whole, Bytes shard_bytes, int source_node) {
  const int shards = ranks_of(source_node);
  std::byte* const first = whole + node(source_node).front() * shard_bytes;
  run_within([&] {
    if (shards == within_->size()) {
      within_->all_gather(as_bytes(first + local_rank_ * shard_bytes, shard_bytes),
                          as_bytes(first, shards * shard_bytes), stream_);
      return;
    }
    for (int i = 0; i < shards; ++i) {
      within_->broadcast(as_bytes(first + i * shard_bytes, shard_bytes), i % within_->size(),
                         stream_);
    }
  });
}

void HierarchicalCommunicator::swap_parts(const std::byte* parts,
                                          std::byte* received,
                                          Bytes part_bytes) {
  if (!all_connected_) peers().connect(other_ranks());
  all_connected_ = true;
  Peers::Batch batch;
  for (int step = 1; step < size(); ++step) {
    const int source = (rank() - step + size()) % size();
    const int target = (rank() + step) % size();
    if (!on_own_node(source)) {
      peers().receive(batch, source, received + source * part_bytes, part_bytes);
    }
    if (!on_own_node(target)) {
      peers().send(batch, target, parts + target * part_bytes, part_bytes);
    }
  }
  const Bytes first = node(own_node_).front() * part_bytes;
  const Bytes bytes = ranks_of(own_node_) * part_bytes;
  run_within([&] {
    within_->all_to_all(as_bytes(const_cast<std::byte*>(parts) + first, bytes),
                        as_bytes(received + first, bytes), stream_);
  });
  peers().finish(batch);
}

/// Broadcasts from the root's node around the ring, chunk by chunk: the first rank of each node
/// forwards the chunk while it shows it to the others of its node.
void HierarchicalCommunicator::spread(std::byte* values, Bytes bytes, int root) {
  const int root_node = map_.node_of(root);
  const int source = own_node_ == root_node ? local_rank_of(root) : 0;
  const bool receives = local_rank_ == 0 && own_node_ != root_node;
  const bool sends = local_rank_ == 0 && next_node() != root_node;
  const auto chunk_at = [&](Bytes at) {
    return std::min(chunk_bytes, bytes - at);
  };
  std::deque<Peers::Batch> received;
  Peers::Batch sent;
  for (Bytes at = 0; receives && at < bytes; at += chunk_bytes) {
    peers().receive(received.emplace_back(), node((own_node_ + nodes() - 1) % nodes()).front(),
                    values + at, chunk_at(at));
  }
  for (Bytes at = 0; at < bytes; at += chunk_bytes) {
    if (receives) {
      peers().finish(received.front());
      received.pop_front();
    }
    run_within([&] { within_->broadcast(as_bytes(values + at, chunk_at(at)), source, stream_); });
    if (sends) peers().send(sent, node(next_node()).front(), values + at, chunk_at(at));
  }
  peers().finish(sent);
}

void HierarchicalCommunicator::run_send(const Call& call, HostView values) {
  if (!on_own_node(call.peer)) return MessageCommunicator::run_send(call, values);
  run_within([&] { within_->send(values, local_rank_of(call.peer), stream_); });
}

void HierarchicalCommunicator::run_receive(const Call& call, HostView values) {
  if (!on_own_node(call.peer)) return MessageCommunicator::run_receive(call, values);
  run_within([&] { within_->receive(values, local_rank_of(call.peer), stream_); });
}

/// The state of one chunk under way; two take turns.
struct HierarchicalCommunicator::Stage {
  std::vector<std::byte>& brought;
  std::vector<std::byte>& summed;
  Peers::Batch received;
  Peers::Batch sent;
};

std::vector<HierarchicalCommunicator::Chunk> HierarchicalCommunicator::chunks_of(
    const HostView& shard) const {
  const Bytes element = size_of(shard.dtype());
  std::vector<Chunk> chunks;
  for (int owner = 0; owner < nodes(); ++owner) {
    const Bytes most = round_up(chunk_bytes / ranks_of(owner), element);
    for (Bytes at = 0; at < shard.bytes(); at += most) {
      chunks.push_back({owner, shard.dtype(), at, std::min(most, shard.bytes() - at)});
    }
  }
  return chunks;
}

/// Bytes of the chunk that each rank of a node ends with, in whole elements; the last may be
/// padded.
Bytes HierarchicalCommunicator::part_of(const Chunk& chunk, int adding_node) const {
  const int ranks = ranks_of(adding_node);
  return round_up(chunk.bytes * ranks_of(chunk.owner_node), ranks * size_of(chunk.dtype)) / ranks;
}

void HierarchicalCommunicator::reduce(const HostView& whole, const HostView& shard) {
  const std::vector<Chunk> chunks = chunks_of(shard);
  std::array<Stage, 2> stages{Stage{brought_[0], summed_[0], {}, {}},
                              Stage{brought_[1], summed_[1], {}, {}}};
  Peers::Batch delivered;
  receive_partial(stages[0], chunks[0]);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    Stage& stage = stages[i % 2];
    if (i + 1 < chunks.size()) receive_partial(stages[(i + 1) % 2], chunks[i + 1]);
    if (chunks[i].owner_node == own_node_) expect_delivery(delivered, chunks[i], shard.data());
    peers().finish(stage.sent);  // of the chunk before the last
    add_own(stage, chunks[i], whole);
    add_node(stage, chunks[i]);
    pass_on(stage, chunks[i], shard.data());
  }
  for (Stage& stage : stages) peers().finish(stage.sent);
  peers().finish(delivered);
}

/// Receives the sum of the previous nodes, one part from each of its ranks, on the first rank of a
/// node.
void HierarchicalCommunicator::receive_partial(Stage& stage, const Chunk& chunk) {
  const int ranks = within_->size();
  Bytes room = part_of(chunk, own_node_) * ranks;
  const bool receives = local_rank_ == 0 && own_node_ > 0;
  const Bytes part = receives ? part_of(chunk, own_node_ - 1) : 0;
  if (receives) room = std::max(room, part * ranks_of(own_node_ - 1));
  if (std::ssize(stage.brought) < room) stage.brought.resize(static_cast<std::size_t>(room));
  if (!receives) return;
  for (int i = 0; i < ranks_of(own_node_ - 1); ++i) {
    peers().receive(stage.received, node(own_node_ - 1)[static_cast<std::size_t>(i)],
                    stage.brought.data() + i * part, part);
  }
}

/// Packs this rank's values of the chunk, or adds them to the sum that was received, which stands
/// for all ranks before.
void HierarchicalCommunicator::add_own(Stage& stage, const Chunk& chunk, const HostView& whole) {
  const bool adds = local_rank_ == 0 && own_node_ > 0;
  peers().finish(stage.received);
  const Bytes shard_bytes = whole.bytes() / size();
  std::byte* to = stage.brought.data();
  for (const int owner : node(chunk.owner_node)) {
    const HostView own = part_in_bytes(whole, owner * shard_bytes + chunk.at, chunk.bytes);
    if (adds) {
      add_in_rank_order(std::array<const std::byte*, 2>{to, own.data()},
                        {to, own.dtype(), own.shape()});
    } else {
      copy_bytes(own.data(), to, chunk.bytes);
    }
    to += chunk.bytes;
  }
  std::fill(to, stage.brought.data() + part_of(chunk, own_node_) * within_->size(), std::byte{0});
}

void HierarchicalCommunicator::add_node(Stage& stage, const Chunk& chunk) {
  const Bytes part = part_of(chunk, own_node_);
  const std::int64_t numel = part / size_of(chunk.dtype);
  if (std::ssize(stage.summed) < part) stage.summed.resize(static_cast<std::size_t>(part));
  run_within([&] {
    within_->reduce_scatter(HostView(stage.brought.data(), chunk.dtype, {numel * within_->size()}),
                            HostView(stage.summed.data(), chunk.dtype, {numel}), stream_);
  });
}

void HierarchicalCommunicator::pass_on(Stage& stage, const Chunk& chunk, std::byte* shard) {
  if (own_node_ + 1 == nodes()) return deliver(stage, chunk, shard);
  peers().send(stage.sent, node(own_node_ + 1).front(), stage.summed.data(),
               part_of(chunk, own_node_));
}

/// Sends the sums from the last node to their owners.
void HierarchicalCommunicator::deliver(Stage& stage, const Chunk& chunk, std::byte* shard) {
  const Bytes part = part_of(chunk, own_node_);
  const Range own = piece(local_rank_, part);
  for (int i = 0; i < ranks_of(chunk.owner_node); ++i) {
    const Range range = common(own, piece(i, chunk.bytes));
    const std::byte* const from = stage.summed.data() + (range.begin - own.begin);
    const int owner = node(chunk.owner_node)[static_cast<std::size_t>(i)];
    if (owner == rank()) {
      copy_bytes(from, shard + chunk.at + (range.begin - i * chunk.bytes), range.bytes());
    } else {
      peers().send(stage.sent, owner, from, range.bytes());
    }
  }
}

void HierarchicalCommunicator::expect_delivery(Peers::Batch& delivered,
                                               const Chunk& chunk,
                                               std::byte* shard) {
  const int last = nodes() - 1;
  if (own_node_ == last) return;  // the ranks of the last node end with what they own
  const Range own = piece(local_rank_, chunk.bytes);
  for (int i = 0; i < ranks_of(last); ++i) {
    const Range range = common(own, piece(i, part_of(chunk, last)));
    peers().receive(delivered, node(last)[static_cast<std::size_t>(i)],
                    shard + chunk.at + (range.begin - own.begin), range.bytes());
  }
}

std::unique_ptr<Communicator> HierarchicalCommunicator::split(Split split) {
  SplitLines part = split_lines(split);
  std::unique_ptr<Communicator> within = within_->split(split);
  std::vector<std::vector<int>> nodes_of_part(map_.nodes.size());
  for (std::size_t r = 0; r < part.members.size(); ++r) {
    nodes_of_part[static_cast<std::size_t>(map_.node_of(part.members[r]))].push_back(
        static_cast<int>(r));
  }
  std::erase_if(nodes_of_part, [](const std::vector<int>& ranks) { return ranks.empty(); });
  std::ranges::sort(nodes_of_part);
  auto made = make_hierarchical(std::move(part.lines), std::move(within),
                                NodeMap{std::move(nodes_of_part)}, timeout_seconds());
  end_split();
  return made;
}

std::unique_ptr<Communicator> make_hierarchical(MessageCommunicator::Lines lines,
                                                std::unique_ptr<Communicator> within,
                                                NodeMap map,
                                                double timeout_seconds) {
  if (map.nodes.size() == 1) return within;
  const bool one_rank_each = std::ranges::all_of(
      map.nodes, [](const std::vector<int>& ranks) { return ranks.size() == 1; });
  const bool few = static_cast<int>(map.nodes.size()) <= flat_nodes_max;
  if ((one_rank_each && few) || !map.contiguous()) {
    return std::make_unique<MessageCommunicator>(std::move(lines), timeout_seconds);
  }
  return std::make_unique<HierarchicalCommunicator>(std::move(lines), std::move(within),
                                                    std::move(map), timeout_seconds);
}

}  // namespace dstrain::comm
