#include "runtime/comm/hierarchical/hierarchical_communicator.h"

#include <algorithm>

#include "runtime/comm/bytes.h"

namespace dstrain::comm {
namespace {

/// How long to wait for word of who is to blame, once this node has failed.
constexpr double word_seconds = 1.0;

int index_in(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::ranges::lower_bound(ranks, rank) - ranks.begin());
}

TensorView as_bytes(std::byte* data, Bytes bytes) {
  return {data, DType::u8, Shape{bytes}};
}

}  // namespace

HierarchicalCommunicator::HierarchicalCommunicator(std::unique_ptr<Transport> between,
                                                   std::unique_ptr<Communicator> within,
                                                   NodeMap map,
                                                   double timeout_seconds)
    : MessageCommunicator(std::move(between), timeout_seconds),
      within_(std::move(within)),
      map_(std::move(map)),
      own_node_(map_.node_of(rank())),
      local_rank_(index_in(node(own_node_), rank())) {
  DSTRAIN_CHECK(map_.contiguous(), "the ranks of a node do not follow each other");
  DSTRAIN_CHECK(within_->size() == ranks_of(own_node_) && within_->rank() == local_rank_,
                "rank {} of {} within the node, {} of {} expected", within_->rank(),
                within_->size(), local_rank_, ranks_of(own_node_));
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

/// The ranks of a node count from 0 in its messages, and they are released without a word when one
/// of them has failed.
void HierarchicalCommunicator::run_within(FunctionRef<void()> run) {
  try {
    run();
  } catch (const Error& error) {
    peers().look_for_culprit(word_seconds);
    fail(error.code(), "{}: on node {}, whose ranks {} to {} count from 0: {}", peers().doing(),
         own_node_, node(own_node_).front(), node(own_node_).back(), error.what());
  }
}

/// Each shard of another node comes to one rank of this node, which shows it to the others.
void HierarchicalCommunicator::gather(std::byte* whole, Bytes shard_bytes) {
  if (shard_bytes == 0) return;
  std::vector<Peers::Batch> received(map_.nodes.size());
  Peers::Batch sent;
  exchange(whole, shard_bytes, received);
  for (int step = 1; step < nodes(); ++step) {
    const std::vector<int>& target = node((own_node_ + step) % nodes());
    const auto partner = static_cast<std::size_t>(local_rank_) % target.size();
    peers().send(sent, target[partner], whole + rank() * shard_bytes, shard_bytes);
  }
  share(whole, shard_bytes, own_node_);
  for (int step = 1; step < nodes(); ++step) {
    const int source = (own_node_ - step + nodes()) % nodes();
    peers().finish(received[static_cast<std::size_t>(source)]);
    share(whole, shard_bytes, source);
  }
  peers().finish(sent);
}

/// Starts to receive the shards that come to this rank, by node.
void HierarchicalCommunicator::exchange(std::byte* whole,
                                        Bytes shard_bytes,
                                        std::vector<Peers::Batch>& received) {
  for (int source = 0; source < nodes(); ++source) {
    if (source == own_node_) continue;
    for (int i = local_rank_; i < ranks_of(source); i += ranks_of(own_node_)) {
      const int peer = node(source)[static_cast<std::size_t>(i)];
      peers().receive(received[static_cast<std::size_t>(source)], peer, whole + peer * shard_bytes,
                      shard_bytes);
    }
  }
}

/// Shows the shards of one node, which lie with the ranks of this one in turn, to all of them.
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

void HierarchicalCommunicator::move_to(int peer, TensorView values) {
  if (!on_own_node(peer)) return MessageCommunicator::move_to(peer, values);
  run_within([&] { within_->send(values, local_rank_of(peer), stream_); });
}

void HierarchicalCommunicator::move_from(int peer, TensorView values) {
  if (!on_own_node(peer)) return MessageCommunicator::move_from(peer, values);
  run_within([&] { within_->receive(values, local_rank_of(peer), stream_); });
}

std::unique_ptr<Communicator> HierarchicalCommunicator::split(Split split) {
  Part part = split_transport(split);
  std::unique_ptr<Communicator> within = within_->split(split);
  std::vector<std::vector<int>> nodes_of_part(map_.nodes.size());
  for (std::size_t r = 0; r < part.members.size(); ++r) {
    nodes_of_part[static_cast<std::size_t>(map_.node_of(part.members[r]))].push_back(
        static_cast<int>(r));
  }
  std::erase_if(nodes_of_part, [](const std::vector<int>& ranks) { return ranks.empty(); });
  std::ranges::sort(nodes_of_part);
  return make_hierarchical(std::move(part.transport), std::move(within),
                           NodeMap{std::move(nodes_of_part)}, timeout_seconds());
}

std::unique_ptr<Communicator> make_hierarchical(std::unique_ptr<Transport> between,
                                                std::unique_ptr<Communicator> within,
                                                NodeMap map,
                                                double timeout_seconds) {
  if (map.nodes.size() == 1) return within;
  const bool one_rank_each = std::ranges::all_of(
      map.nodes, [](const std::vector<int>& ranks) { return ranks.size() == 1; });
  if (one_rank_each || !map.contiguous()) {
    return std::make_unique<MessageCommunicator>(std::move(between), timeout_seconds);
  }
  return std::make_unique<HierarchicalCommunicator>(std::move(between), std::move(within),
                                                    std::move(map), timeout_seconds);
}

}  // namespace dstrain::comm
