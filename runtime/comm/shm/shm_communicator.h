#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/group_barrier.h"
#include "runtime/comm/host_communicator.h"
#include "runtime/comm/host_sum.h"
#include "runtime/comm/shm/segment.h"
#include "runtime/comm/shm/segment_memory.h"
#include "runtime/comm/store.h"

namespace dstrain::comm {

/// One rank of a group of processes of one node, which share a segment of memory. The other ranks
/// read a tensor in memory() in place: an operation costs two barriers (three for all_reduce) and
/// moves no byte twice. Any other tensor goes through the segment in rounds: the rank fills its
/// slot, all arrive, every rank reads the slots. Two slots in turn let a rank fill one while slower
/// ranks still read the other; a round costs one barrier (two for a large all_reduce) and one copy
/// into the segment. Ranks of both kinds mix. Ranks sleep while they wait.
///
/// Memory traffic of n bytes of `whole` between N ranks, over all ranks, from memory(): all_gather
/// reads and writes (N-1)/N n per rank (when `shard` is its own part), reduce_scatter reads n and
/// writes n/N. With two ranks that is 2n and 3n in all, where a copy of n bytes moves 2n: at most 1
/// and 2/3 of the rate of a copy.
class ShmCommunicator final : public HostCommunicator {
 public:
  /// Waits for the other ranks.
  ShmCommunicator(std::shared_ptr<const Segment> segment, GroupBarrier::Options options);
  [[nodiscard]] MemoryResource& memory() override { return memory_; }
  std::unique_ptr<Communicator> split(Split split) override;
  void abort() noexcept override { barrier_.abort(); }

 protected:
  void run_all_gather(const Call& call, HostView shard, HostView whole) override;
  void run_reduce_scatter(const Call& call, HostView whole, HostView shard) override;
  void run_all_reduce(const Call& call, HostView values) override;
  void run_all_to_all(const Call& call, HostView parts, HostView received) override;
  void run_broadcast(const Call& call, HostView values) override;
  void run_send(const Call& call, HostView values) override;
  void run_receive(const Call& call, HostView values) override;

 private:
  struct Rounds;
  struct Offsets;
  struct Part;
  enum class Shows : std::uint8_t { tensor, nothing };
  [[nodiscard]] Call named(Call call) const;
  void announce(const Call& call, const HostView& tensor, Shows shows);
  void agree();
  template <class Fill, class Take>
  void run_rounds(Rounds rounds, const Fill& fill, const Take& take);
  [[nodiscard]] bool stages() const;
  [[nodiscard]] std::byte* slot(int rank) const { return segment_->slot(rank, round_); }
  [[nodiscard]] const std::byte* seen(int rank, const std::byte* own, Offsets offsets) const;
  [[nodiscard]] Bytes piece_bytes() const;
  void fill_pieces(const HostView& parts, Bytes at, Bytes count);
  void reduce_small(const Call& call, const HostView& values);
  void reduce_large(const Call& call, const HostView& values);
  [[nodiscard]] Part part_of(int rank, Bytes bytes) const;
  void sum_part(const HostView& values, Bytes at, Part part);

  std::shared_ptr<const Segment> segment_;  // shared with the frees of memory_
  SegmentMemory memory_;
  GroupBarrier::Options options_;
  GroupBarrier barrier_;
  std::uint32_t operation_ = 0;
  std::uint32_t round_ = 0;
  std::vector<const std::byte*> shown_;  ///< by rank, its tensor in the segment; null: none there
  bool any_staged_ = false;
  bool any_in_place_ = false;
};

/// Makes the communicator of ranks that share a segment. Waits for the others.
std::unique_ptr<Communicator> make_shm_communicator(std::shared_ptr<const Segment> segment,
                                                    GroupBarrier::Options options);

}  // namespace dstrain::comm
