#include "runtime/comm/thread/thread_communicator.h"

#include "runtime/comm/bytes.h"
#include "runtime/comm/rank_order_sum.h"
#include "runtime/comm/split_plan.h"

namespace dstrain::comm {

ThreadWorld::ThreadWorld(int size)
    : members(static_cast<std::size_t>(size)),
      posted(static_cast<std::size_t>(size)),
      splits(static_cast<std::size_t>(size)),
      subworlds(static_cast<std::size_t>(size)),
      channels(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)) {}

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<ThreadWorld> world, Meeting::Options options)
    : HostCommunicator({options.rank, static_cast<int>(world->members.size())}),
      world_(std::move(world)),
      options_(options),
      meeting_(world_->group, world_->members, options) {}

void ThreadCommunicator::post(const Call& call, const TensorView& view) {
  meeting_.announce(call);
  world_->posted[static_cast<std::size_t>(rank())] = view.data();
  meeting_.meet();
}

const float* ThreadCommunicator::posted_floats(int rank) const {
  return reinterpret_cast<const float*>(world_->posted[static_cast<std::size_t>(rank)]);
}

/// The sum over ranks of elements [offset, offset + numel) of what they posted.
void ThreadCommunicator::add_posted(std::int64_t offset, std::int64_t numel, float* sum) const {
  if (numel == 0) return;
  std::vector<const float*> terms;
  for (int r = 0; r < size(); ++r) terms.push_back(posted_floats(r) + offset);
  add_in_rank_order(terms, sum, numel);
}

void ThreadCommunicator::run_all_gather(const Call& call, TensorView shard, TensorView whole) {
  post(call, shard);
  for (int r = 0; r < size(); ++r) {
    copy_bytes(world_->posted[static_cast<std::size_t>(r)], whole.data() + r * shard.bytes(),
               shard.bytes());
  }
  meeting_.tick();
}

void ThreadCommunicator::run_reduce_scatter(const Call& call, TensorView whole, TensorView shard) {
  post(call, whole);
  add_posted(rank() * shard.numel(), shard.numel(), reinterpret_cast<float*>(shard.data()));
  meeting_.tick();
}

/// Each rank sums its part in place, which no other rank reads before the tick.
void ThreadCommunicator::run_all_reduce(const Call& call, TensorView values) {
  post(call, values);
  const auto begin = [&](int r) {
    return values.numel() * r / size();
  };
  auto* const own = reinterpret_cast<float*>(values.data());
  add_posted(begin(rank()), begin(rank() + 1) - begin(rank()), own + begin(rank()));
  meeting_.tick();
  for (int r = 0; r < size(); ++r) {
    const Bytes at = begin(r) * size_of(DType::f32);
    copy_bytes(world_->posted[static_cast<std::size_t>(r)] + at, values.data() + at,
               begin(r + 1) * size_of(DType::f32) - at);
  }
  meeting_.tick();
}

void ThreadCommunicator::run_broadcast(const Call& call, TensorView values) {
  post(call, values);
  copy_bytes(world_->posted[static_cast<std::size_t>(call.peer)], values.data(), values.bytes());
  meeting_.tick();
}

void ThreadCommunicator::run_send(const Call& call, TensorView values) {
  meeting_.announce_pairwise(call);
  ThreadWorld::Channel& channel = world_->channel(rank(), call.peer);
  channel.call = call;
  channel.values = values.data();
  channel.sent.raise();
  meeting_.wait_for_peer(channel.received, channel.sent.count, call.peer);
}

void ThreadCommunicator::run_receive(const Call& call, TensorView values) {
  meeting_.announce_pairwise(call);
  ThreadWorld::Channel& channel = world_->channel(call.peer, rank());
  meeting_.wait_for_peer(channel.sent, channel.received.count + 1, call.peer);
  meeting_.check_message(channel.call);
  copy_bytes(channel.values, values.data(), values.bytes());
  channel.received.raise();
}

void ThreadCommunicator::run_barrier(const Call& call) {
  meeting_.announce(call);
  meeting_.meet();
}

std::unique_ptr<Communicator> ThreadCommunicator::split(Split split) {
  meeting_.announce({Operation::split, DType::u8, 0, 0});
  world_->splits[static_cast<std::size_t>(rank())] = split;
  meeting_.meet();
  const SplitPlan plan = plan_split(world_->splits, rank());
  auto& subworld = world_->subworlds[static_cast<std::size_t>(plan.members.front())];
  if (plan.rank == 0) {
    subworld = std::make_shared<ThreadWorld>(static_cast<int>(plan.members.size()));
  }
  meeting_.tick();
  std::shared_ptr<ThreadWorld> joined = subworld;
  meeting_.tick();
  if (plan.rank == 0) subworld.reset();
  return std::make_unique<ThreadCommunicator>(
      std::move(joined),
      Meeting::Options{.rank = plan.rank, .timeout_seconds = options_.timeout_seconds});
}

}  // namespace dstrain::comm
