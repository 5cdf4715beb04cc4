#pragma once
#include <vector>

#include "runtime/comm/host_communicator.h"
#include "runtime/comm/message/peers.h"

namespace dstrain::comm {

/// One rank of a group that communicates in messages. The transport only moves bytes; `control`
/// agrees on the operations, and nothing else uses it; sums are added here, in rank order. Every
/// rank is connected with every other. Bytes that a rank sends and receives, for n bytes of `whole`
/// over N ranks:
///
///   all_gather      (N-1)/N n   every shard goes straight to its place
///   reduce_scatter  (N-1)/N n   every part goes straight to its owner, which adds up in rank order
///   all_reduce      2 (N-1)/N n the one after the other; (N-1) n when N n is small, in one step
///   all_to_all      (N-1)/N n   every part goes straight to its place
///   broadcast       n           large: the root sends 1/N to each; they then gather
///
/// Memory in addition to the views: reduce_scatter stages the parts of others, at most 8 MiB up to
/// N = 1024; a small all_reduce stages N n, at most 256 KiB.
class MessageCommunicator : public HostCommunicator {
 public:
  /// A rank's connections to the others.
  struct Lines {
    std::unique_ptr<Transport> transport;
    std::unique_ptr<ControlGroup> control;
  };
  /// Connects the ranks: every rank calls it.
  MessageCommunicator(Lines lines, double timeout_seconds);
  std::unique_ptr<Communicator> split(Split split) override;
  void abort() noexcept override { peers_.abort(); }

 protected:
  /// Makes a communicator that connects no ranks yet.
  struct Unconnected {};
  MessageCommunicator(Unconnected unconnected, Lines lines, double timeout_seconds);

  void run_all_gather(const Call& call, HostView shard, HostView whole) final;
  void run_reduce_scatter(const Call& call, HostView whole, HostView shard) final;
  void run_all_reduce(const Call& call, HostView values) final;
  void run_all_to_all(const Call& call, HostView parts, HostView received) final;
  void run_broadcast(const Call& call, HostView values) final;
  void run_send(const Call& call, HostView values) override;
  void run_receive(const Call& call, HostView values) override;

  /// Fills `whole` from the others; this rank's shard is already in place.
  virtual void gather(std::byte* whole, Bytes shard_bytes);
  /// shard = the sum over ranks of their whole[rank()].
  virtual void reduce(const HostView& whole, const HostView& shard);
  /// received[r] = parts_r[rank()], of `part_bytes` each.
  virtual void swap_parts(const std::byte* parts, std::byte* received, Bytes part_bytes);
  /// values = the values of `root`.
  virtual void spread(std::byte* values, Bytes bytes, int root);
  /// Called after a failure: releases ranks that wait for this one elsewhere.
  virtual void give_up() noexcept {}

  struct SplitLines {
    Lines lines;
    std::vector<int> members;
  };
  /// Returns the connections of the ranks of the same color. They connect when their communicator
  /// is made, before end_split().
  SplitLines split_lines(Split split);
  void end_split();

  [[nodiscard]] Peers& peers() { return peers_; }
  [[nodiscard]] std::vector<int> other_ranks() const;
  [[nodiscard]] double timeout_seconds() const { return timeout_seconds_; }

 private:
  template <class Run>
  void operate(Run&& run);
  void reduce_small(const HostView& values);
  void send_to_all(std::byte* values, Bytes bytes, int root);

  /// A range of the elements of every part, from byte `at` on, in transit to their owners.
  struct Round {
    Peers::Batch received;
    Peers::Batch sent;
    Bytes at = 0;
    Bytes bytes = 0;
    std::byte* staged = nullptr;  ///< the others' elements of this rank's part
  };
  void start(Round& round, const std::byte* whole, Bytes shard_bytes);
  void add_up(Round& round, const std::byte* own, const HostView& shard);

  Peers peers_;
  double timeout_seconds_;
  int splits_ = 0;
  std::vector<std::byte> staging_;
};

}  // namespace dstrain::comm
