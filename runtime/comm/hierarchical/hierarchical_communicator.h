#pragma once
#include <array>
#include <memory>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/comm/hierarchical/node_map.h"
#include "runtime/comm/message/message_communicator.h"
#include "runtime/device/cpu_stream.h"

namespace dstrain::comm {

/// One rank of a group over several nodes: a communicator within the node (shared memory) and
/// messages between nodes, so that data crosses from node to node once and not once per rank. The
/// ranks of a node must follow each other, else use the flat MessageCommunicator; make_hierarchical
/// chooses.
///
/// Sums are bit-equal to those of every other communicator: ((x_0 + x_1) + x_2) + ... over the
/// ranks of the job. Adding up partial sums of nodes would give other bits, so the sum travels:
/// node 0 adds its ranks in order, node 1 receives that sum and adds its own, and so on to the last
/// node, which sends each part to its owner. Chunks follow each other through the chain, so that
/// all nodes work at once. The first rank of a node receives a chunk and adds its own values; the
/// ranks of the node then add theirs by a reduce_scatter within the node, and each sends the part
/// that it ends with. Shards and broadcasts go from node to node around a ring. Only the ranks that
/// need it are connected (linked_ranks.h); ranks that send() and receive() connect when they first
/// do, and all ranks in the first all_to_all.
///
/// Bytes for n bytes of `whole` over N ranks on K nodes of g = N/K ranks:
///
///                   between nodes, each node          within a node, each rank
///   all_gather      (K-1)/K n in, as much out         (N-1)/N n
///   reduce_scatter  at most n in and n out            (g-1)/g n
///   all_reduce      at most 2 n in and out            the two together
///   all_to_all      (K-1)/K g n in, as much out       (g-1)/N n
///   broadcast       n in, n out                       n
///
/// The flat communicator needs g times (K-1)/K n for the first two. Staging: four chunks of 1 MiB.
class HierarchicalCommunicator final : public MessageCommunicator {
 public:
  /// Connects the ranks: every rank calls it.
  HierarchicalCommunicator(Lines lines,
                           std::unique_ptr<Communicator> within,
                           NodeMap map,
                           double timeout_seconds);
  std::unique_ptr<Communicator> split(Split split) override;
  void abort() noexcept override;

 protected:
  void gather(std::byte* whole, Bytes shard_bytes) override;
  void reduce(const HostView& whole, const HostView& shard) override;
  void swap_parts(const std::byte* parts, std::byte* received, Bytes part_bytes) override;
  void spread(std::byte* values, Bytes bytes, int root) override;
  void run_send(const Call& call, HostView values) override;
  void run_receive(const Call& call, HostView values) override;
  void give_up() noexcept override { within_->abort(); }

 private:
  /// Some elements of each shard of the ranks of one node, one after the other.
  struct Chunk {
    int owner_node = 0;
    DType dtype = DType::f32;
    Bytes at = 0;     ///< offset in a shard
    Bytes bytes = 0;  ///< of each shard
  };

  [[nodiscard]] const std::vector<int>& node(int number) const {
    return map_.nodes[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] int ranks_of(int number) const { return static_cast<int>(node(number).size()); }
  [[nodiscard]] int nodes() const { return static_cast<int>(map_.nodes.size()); }
  [[nodiscard]] int next_node() const { return (own_node_ + 1) % nodes(); }
  /// The rank of node `number` that forwards shard `index` of each other node.
  [[nodiscard]] int bearer(int number, int index) const {
    return node(number)[static_cast<std::size_t>(index % ranks_of(number))];
  }
  [[nodiscard]] bool on_own_node(int rank) const;
  [[nodiscard]] int local_rank_of(int rank) const;

  void receive_shards(Peers::Batch& batch, std::byte* whole, Bytes shard_bytes, int source_node);
  void send_shards(Peers::Batch& batch, std::byte* whole, Bytes shard_bytes, int source_node);
  void share(std::byte* whole, Bytes shard_bytes, int source_node);

  [[nodiscard]] std::vector<Chunk> chunks_of(const HostView& shard) const;
  [[nodiscard]] Bytes part_of(const Chunk& chunk, int adding_node) const;
  struct Stage;
  void receive_partial(Stage& stage, const Chunk& chunk);
  void add_own(Stage& stage, const Chunk& chunk, const HostView& whole);
  void add_node(Stage& stage, const Chunk& chunk);
  void pass_on(Stage& stage, const Chunk& chunk, std::byte* shard);
  void deliver(Stage& stage, const Chunk& chunk, std::byte* shard);
  void expect_delivery(Peers::Batch& delivered, const Chunk& chunk, std::byte* shard);
  void run_within(FunctionRef<void()> run);

  std::unique_ptr<Communicator> within_;
  NodeMap map_;
  int own_node_;
  int local_rank_;
  bool all_connected_ = false;
  CpuStream stream_{CpuStream::Mode::inline_on_caller};
  std::array<std::vector<std::byte>, 2> brought_;  ///< the summands of this rank for a chunk
  std::array<std::vector<std::byte>, 2> summed_;   ///< this rank's part of the node's sum
};

/// Makes a communicator over the ranks of all nodes. On one node it uses shared memory alone. It is
/// the flat MessageCommunicator if the ranks of a node are not consecutive, or if up to 16
/// nodes have one rank each; else the one above. `within` joins the ranks of this node. Every rank
/// calls it.
std::unique_ptr<Communicator> make_hierarchical(MessageCommunicator::Lines lines,
                                                std::unique_ptr<Communicator> within,
                                                NodeMap map,
                                                double timeout_seconds);

}  // namespace dstrain::comm
