#pragma once
#include <memory>

#include "runtime/comm/checked_call.h"
#include "runtime/comm/communicator.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/device/host_queue.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::comm {

/// Collectives of a device's tensors over a communicator of host memory, through a staging block of
/// it, in chunks. The stream copies each chunk there and back and waits in between for the inner
/// collective, which runs on a host queue. For devices that no library connects, such as one that
/// two ranks share. The bits are those of the inner communicator, whose sums add element by element
/// in the order of the ranks. Observers get begin and end of each chunk.
class StagedCommunicator final : public Communicator {
 public:
  struct Staging {
    MemoryResource& memory;  ///< of the host, preferably pinned
    Bytes bytes;             ///< of the block: at least 2 N elements
  };
  StagedCommunicator(std::unique_ptr<Communicator> inner, Staging staging);

  [[nodiscard]] int rank() const override { return inner_->rank(); }
  [[nodiscard]] int size() const override { return inner_->size(); }
  [[nodiscard]] SumOrder sum_order() const override { return inner_->sum_order(); }
  void all_gather(TensorView shard, TensorView whole, StreamView stream) override;
  void reduce_scatter(TensorView whole, TensorView shard, StreamView stream) override;
  void all_reduce(TensorView values, StreamView stream) override;
  void all_to_all(TensorView parts, TensorView received, StreamView stream) override;
  void broadcast(TensorView values, int root, StreamView stream) override;
  void send(TensorView values, int target, StreamView stream) override;
  void receive(TensorView values, int source, StreamView stream) override;
  std::unique_ptr<Communicator> split(Split split) override;
  void abort() noexcept override { inner_->abort(); }
  void set_observer(CollectiveObserver* observer) override {
    Communicator::set_observer(observer);
    inner_->set_observer(observer);
  }

 private:
  struct Side;
  [[nodiscard]] GroupRank group_rank() const { return {rank(), size()}; }
  /// Moves `from`, cut into as many parts as it has, through a collective of the inner communicator
  /// into `to`, chunk by chunk.
  template <class Collective>
  void exchange(const Side& from, const Side& to, StreamView stream, Collective collective);
  /// Does the same for a tensor that one call reads, writes or both.
  template <class Collective>
  void pass(TensorView values, StreamView stream, Collective collective);
  template <class Task>
  void run_between_copies(StreamView stream, Task task);

  std::unique_ptr<Communicator> inner_;
  Staging staging_;
  CpuStream inline_{CpuStream::Mode::inline_on_caller};  ///< of the queue's thread
  HostBuffer block_;
  HostQueue queue_{
      HostQueue::Mode::worker_thread};  // its work uses the other members, so it is destroyed first
};

}  // namespace dstrain::comm
