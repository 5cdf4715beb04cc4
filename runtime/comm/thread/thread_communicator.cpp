#include "runtime/comm/thread/thread_communicator.h"

#include "runtime/comm/group_barrier.h"
#include "runtime/comm/host_communicator.h"
#include "runtime/comm/host_sum.h"
#include "runtime/comm/split_plan.h"

namespace dstrain::comm {
namespace {

/// The shared state of the threads of one group.
struct ThreadWorld {
  explicit ThreadWorld(int size);

  /// A transfer from one rank to another: the sender waits until the receiver has copied.
  struct Channel {
    WaitableCounter sent;
    WaitableCounter received;
    Call call;
    const std::byte* values = nullptr;
  };
  [[nodiscard]] Channel& channel(int source, int target) {
    return channels[static_cast<std::size_t>(source) * members.size() +
                    static_cast<std::size_t>(target)];
  }

  GroupBlock group;
  std::vector<MemberBlock> members;
  std::vector<std::byte*> posted;  ///< the memory that each rank shows in an operation
  std::vector<Communicator::Split> splits;
  std::vector<std::shared_ptr<ThreadWorld>> subworlds;  ///< by the parent's rank of its first rank
  std::vector<Channel> channels;                        ///< by source, then target
};

/// One rank of a group of threads.
class ThreadCommunicator final : public HostCommunicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadWorld> world, GroupBarrier::Options options);
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
  void post(const Call& call, const HostView& view);
  void add_posted(std::int64_t offset, const HostView& sum) const;

  std::shared_ptr<ThreadWorld> world_;  // shared: no rank knows whether it is the last one
  GroupBarrier::Options options_;
  GroupBarrier barrier_;
};

ThreadWorld::ThreadWorld(int size)
    : members(static_cast<std::size_t>(size)),
      posted(static_cast<std::size_t>(size)),
      splits(static_cast<std::size_t>(size)),
      subworlds(static_cast<std::size_t>(size)),
      channels(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {}

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<ThreadWorld> world,
                                       GroupBarrier::Options options)
    : HostCommunicator({options.rank, static_cast<int>(world->members.size())}),
      world_(std::move(world)),
      options_(std::move(options)),
      barrier_(world_->group, world_->members, options_) {}

void ThreadCommunicator::post(const Call& call, const HostView& view) {
  barrier_.announce(call);
  world_->posted[static_cast<std::size_t>(rank())] = view.data();
  barrier_.agree();
}

/// Adds the values that all ranks have posted, from element `offset` on.
void ThreadCommunicator::add_posted(std::int64_t offset, const HostView& sum) const {
  if (sum.numel() == 0) return;
  std::vector<const std::byte*> terms;
  terms.reserve(static_cast<std::size_t>(size()));
  for (const std::byte* posted : world_->posted) {
    terms.push_back(posted + offset * size_of(sum.dtype()));
  }
  add_in_rank_order(terms, sum);
}

void ThreadCommunicator::run_all_gather(const Call& call, HostView shard, HostView whole) {
  post(call, shard);
  for (int r = 0; r < size(); ++r) {
    copy_bytes(world_->posted[static_cast<std::size_t>(r)], whole.data() + r * shard.bytes(),
               shard.bytes());
  }
  barrier_.arrive_and_wait();
}

void ThreadCommunicator::run_reduce_scatter(const Call& call, HostView whole, HostView shard) {
  post(call, whole);
  add_posted(rank() * shard.numel(), shard);
  barrier_.arrive_and_wait();
}

/// Each rank sums its part in place; no other rank reads that part before the barrier.
void ThreadCommunicator::run_all_reduce(const Call& call, HostView values) {
  post(call, values);
  const auto begin = [&](int r) {
    return values.numel() * r / size();
  };
  const std::int64_t own = begin(rank());
  add_posted(own, values.part(own, {begin(rank() + 1) - own}));
  barrier_.arrive_and_wait();
  for (int r = 0; r < size(); ++r) {
    const Bytes at = begin(r) * size_of(values.dtype());
    copy_bytes(world_->posted[static_cast<std::size_t>(r)] + at, values.data() + at,
               begin(r + 1) * size_of(values.dtype()) - at);
  }
  barrier_.arrive_and_wait();
}

void ThreadCommunicator::run_all_to_all(const Call& call, HostView parts, HostView received) {
  post(call, parts);
  const Bytes part = parts.bytes() / size();
  for (int r = 0; r < size(); ++r) {
    copy_bytes(world_->posted[static_cast<std::size_t>(r)] + rank() * part,
               received.data() + r * part, part);
  }
  barrier_.arrive_and_wait();
}

void ThreadCommunicator::run_broadcast(const Call& call, HostView values) {
  post(call, values);
  copy_bytes(world_->posted[static_cast<std::size_t>(call.peer)], values.data(), values.bytes());
  barrier_.arrive_and_wait();
}

void ThreadCommunicator::run_send(const Call& call, HostView values) {
  barrier_.announce_pairwise(call);
  ThreadWorld::Channel& channel = world_->channel(rank(), call.peer);
  channel.call = call;
  channel.values = values.data();
  channel.sent.increment();
  barrier_.wait_for_peer(channel.received, channel.sent.count, call.peer);
}

void ThreadCommunicator::run_receive(const Call& call, HostView values) {
  barrier_.announce_pairwise(call);
  ThreadWorld::Channel& channel = world_->channel(call.peer, rank());
  barrier_.wait_for_peer(channel.sent, channel.received.count + 1, call.peer);
  barrier_.check_message(channel.call);
  copy_bytes(channel.values, values.data(), values.bytes());
  channel.received.increment();
}

std::unique_ptr<Communicator> ThreadCommunicator::split(Split split) {
  barrier_.announce({Operation::split, DType::u8, 0, 0});
  world_->splits[static_cast<std::size_t>(rank())] = split;
  barrier_.agree();
  const SplitPlan plan = plan_split(world_->splits, rank());
  auto& subworld = world_->subworlds[static_cast<std::size_t>(plan.members.front())];
  if (plan.rank == 0) {
    subworld = std::make_shared<ThreadWorld>(static_cast<int>(plan.members.size()));
  }
  barrier_.arrive_and_wait();
  std::shared_ptr<ThreadWorld> joined = subworld;
  barrier_.arrive_and_wait();
  if (plan.rank == 0) subworld.reset();
  return std::make_unique<ThreadCommunicator>(
      std::move(joined),
      GroupBarrier::Options{.rank = plan.rank, .timeout_seconds = options_.timeout_seconds});
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_group(int size, double timeout_seconds) {
  DSTRAIN_CHECK(size >= 1, "a group of {} threads", size);
  const auto world = std::make_shared<ThreadWorld>(size);
  std::vector<std::unique_ptr<Communicator>> group;
  group.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    group.push_back(std::make_unique<ThreadCommunicator>(
        world, GroupBarrier::Options{.rank = rank, .timeout_seconds = timeout_seconds}));
  }
  return group;
}

}  // namespace dstrain::comm
