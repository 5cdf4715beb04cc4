#pragma once
#include <memory>
#include <string>

#include "runtime/comm/host_communicator.h"
#include "runtime/comm/meeting.h"
#include "runtime/comm/shm/segment.h"
#include "runtime/comm/store.h"

namespace dstrain::comm {

/// One rank of a group of processes of one node, which share a segment of memory. Data goes through
/// the segment in rounds: every rank fills its slot, all meet, every rank reads the others' slots.
/// Two slots in turn let a rank fill one while slower ranks still read the other; a round costs one
/// tick (two for a large all_reduce) and one copy into the segment. Ranks sleep when they wait.
class ShmCommunicator final : public HostCommunicator {
 public:
  /// Waits for the other ranks.
  ShmCommunicator(Segment segment, Meeting::Options options);
  std::unique_ptr<Communicator> split(Split split) override;
  void abort() noexcept override { meeting_.abort(); }

 protected:
  void run_all_gather(const Call& call, TensorView shard, TensorView whole) override;
  void run_reduce_scatter(const Call& call, TensorView whole, TensorView shard) override;
  void run_all_reduce(const Call& call, TensorView values) override;
  void run_broadcast(const Call& call, TensorView values) override;
  void run_send(const Call& call, TensorView values) override;
  void run_receive(const Call& call, TensorView values) override;
  void run_barrier(const Call& call) override;

 private:
  void meet_or_tick(bool first);
  void reduce_small(float* values, std::int64_t numel);
  void reduce_large(float* values, std::int64_t numel);
  void reduce_round(float* values, std::int64_t numel, bool first);
  [[nodiscard]] const float* slot_floats(int rank) const;

  Segment segment_;
  Meeting::Options options_;
  Meeting meeting_;
  std::uint32_t round_ = 0;
};

struct ShmOptions {
  int rank = 0;
  int size = 1;
  double timeout_seconds = 600;  ///< of joining and of each later wait
  std::string name = "world";    ///< keeps the groups that meet in one store apart
};

/// Joins the group; every rank calls it. The store is not used afterwards.
std::unique_ptr<Communicator> make_shm_communicator(Store& store, const ShmOptions& options);

}  // namespace dstrain::comm
