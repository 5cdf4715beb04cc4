#pragma once
#include <memory>
#include <vector>

#include "runtime/comm/host_communicator.h"
#include "runtime/comm/meeting.h"

namespace dstrain::comm {

/// What the threads of one group share.
struct ThreadWorld {
  explicit ThreadWorld(int size);

  /// A hand-over from one rank to another: the sender waits until the receiver has copied.
  struct Channel {
    Signal sent;
    Signal received;
    Call call;
    const std::byte* values = nullptr;
  };
  [[nodiscard]] Channel& channel(int source, int target) {
    return channels[static_cast<std::size_t>(source) * members.size() +
                    static_cast<std::size_t>(target)];
  }

  GroupBlock group;
  std::vector<MemberBlock> members;
  std::vector<std::byte*> posted;  ///< the memory each rank shows to the others in an operation
  std::vector<Communicator::Split> splits;
  std::vector<std::shared_ptr<ThreadWorld>> subworlds;  ///< by the parent's rank of its first rank
  std::vector<Channel> channels;                        ///< by source, then target
};

/// One rank of a group of threads.
class ThreadCommunicator final : public HostCommunicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadWorld> world, Meeting::Options options);
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
  void post(const Call& call, const TensorView& view);
  [[nodiscard]] const float* posted_floats(int rank) const;
  void add_posted(std::int64_t offset, std::int64_t numel, float* sum) const;

  std::shared_ptr<ThreadWorld> world_;  // shared: no rank knows that it is the last to go
  Meeting::Options options_;
  Meeting meeting_;
};

}  // namespace dstrain::comm
