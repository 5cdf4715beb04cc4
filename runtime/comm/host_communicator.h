#pragma once
#include <type_traits>
#include <vector>

#include "runtime/comm/call.h"
#include "runtime/comm/communicator.h"

namespace dstrain::comm {

/// Base of the communicators of host memory: checks the arguments, which is the same for every
/// backend, launches on the stream, and calls the observer. A backend implements the run_
/// functions. They block until done, get checked arguments, and run one at a time; those that sum
/// get f32, bf16 and f16.
class HostCommunicator : public Communicator {
 public:
  HostCommunicator(const HostCommunicator&) = delete;
  HostCommunicator& operator=(const HostCommunicator&) = delete;
  HostCommunicator(HostCommunicator&&) = delete;
  HostCommunicator& operator=(HostCommunicator&&) = delete;
  ~HostCommunicator() override = default;

  [[nodiscard]] int rank() const final { return rank_; }
  [[nodiscard]] int size() const final { return size_; }
  [[nodiscard]] SumOrder sum_order() const final { return SumOrder::by_rank; }
  void all_gather(TensorView shard, TensorView whole, StreamView stream) final;
  void reduce_scatter(TensorView whole, TensorView shard, StreamView stream) final;
  void all_reduce(TensorView values, StreamView stream) final;
  void all_to_all(TensorView parts, TensorView received, StreamView stream) final;
  void broadcast(TensorView values, int root, StreamView stream) final;
  void send(TensorView values, int target, StreamView stream) final;
  void receive(TensorView values, int source, StreamView stream) final;

 protected:
  explicit HostCommunicator(GroupRank own) : rank_(own.rank), size_(own.size) {}

  virtual void run_all_gather(const Call& call, HostView shard, HostView whole) = 0;
  virtual void run_reduce_scatter(const Call& call, HostView whole, HostView shard) = 0;
  virtual void run_all_reduce(const Call& call, HostView values) = 0;
  virtual void run_all_to_all(const Call& call, HostView parts, HostView received) = 0;
  virtual void run_broadcast(const Call& call, HostView values) = 0;
  virtual void run_send(const Call& call, HostView values) = 0;
  virtual void run_receive(const Call& call, HostView values) = 0;

  /// Returns the `own` of every rank, by rank, for split().
  template <class T>
  requires std::is_trivially_copyable_v<T> std::vector<T> gather_plain(T own) {
    std::vector<T> all(static_cast<std::size_t>(size_));
    constexpr std::int64_t bytes = sizeof(T);
    run_all_gather({Operation::split, DType::u8, 0, bytes}, {&own, DType::u8, {bytes}},
                   {all.data(), DType::u8, {bytes * size_}});
    return all;
  }

 private:
  /// Launches `run`, with the observer's calls.
  template <class Run>
  void launch(const Call& call, StreamView stream, Run run);
  void reduce_scatter_integers(const Call& call, HostView whole, HostView shard);
  void all_reduce_integers(const Call& call, HostView values);

  int rank_;
  int size_;
};

}  // namespace dstrain::comm
