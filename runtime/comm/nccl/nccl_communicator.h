#pragma once
#include <functional>
#include <memory>

#include <cuda_runtime_api.h>

#include "runtime/base/unique_handle.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/nccl/connect_nccl.h"
#include "runtime/comm/nccl/nccl_connection.h"
#include "runtime/comm/nccl/nccl_watch.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/host_queue.h"

namespace dstrain::comm {

/// Collectives of GPUs by NCCL, launched on the caller's stream. The host waits for none of them.
/// Sums are NCCL's, in its order, with the same bits on every rank; all_reduce combines its
/// reduce_scatter and all_gather. Calls that NCCL refuses throw at once; the stream's waits report
/// later failures (NcclWatch). A host queue follows the GPU to notify the observer and the watch.
/// The last elements of an all_reduce, which cannot be split evenly, pass through a few words of
/// GPU memory that no memory plan counts.
class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(NcclMember member);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  NcclCommunicator(NcclCommunicator&&) = delete;
  NcclCommunicator& operator=(NcclCommunicator&&) = delete;
  /// Leaves the group. During stack unwinding it aborts instead, on this rank only.
  ~NcclCommunicator() override;

  [[nodiscard]] int rank() const override { return own_.rank; }
  [[nodiscard]] int size() const override { return own_.size; }
  [[nodiscard]] SumOrder sum_order() const override { return SumOrder::library; }
  void all_gather(TensorView shard, TensorView whole, StreamView stream) override;
  void reduce_scatter(TensorView whole, TensorView shard, StreamView stream) override;
  void all_reduce(TensorView values, StreamView stream) override;
  void all_to_all(TensorView parts, TensorView received, StreamView stream) override;
  void broadcast(TensorView values, int root, StreamView stream) override;
  void send(TensorView values, int target, StreamView stream) override;
  void receive(TensorView values, int source, StreamView stream) override;
  std::unique_ptr<Communicator> split(Split split) override;
  void abort() noexcept override { watch_.abort(); }

 private:
  struct DeviceWordsTraits {
    using Raw = std::byte*;
    static constexpr std::byte* null() noexcept { return nullptr; }
    static void release(std::byte* address) noexcept { cudaFree(address); }
  };
  void connect();
  /// Calls `tell` on the queue.
  void follow(const cuda::CudaStream& stream, std::function<void()> tell);
  /// `launch` makes the NCCL calls of an operation on the given stream.
  template <class Launch>
  void run(const Call& call, StreamView view, const Launch& launch);
  struct Shards {
    std::byte* own;
    std::byte* whole;  ///< one shard of each rank
  };
  void gather_bytes(Shards shards, Bytes bytes, cudaStream_t stream);
  void sum(Shards shards, std::int64_t numel, DType dtype, cudaStream_t stream);
  void sum_whole(std::byte* whole, std::int64_t numel, DType dtype, cudaStream_t stream);
  void sum_tail(const TensorView& tail, cudaStream_t stream);

  NcclMember member_;
  GroupRank own_;
  NcclConnection connection_;
  NcclWatch watch_;
  UniqueHandle<DeviceWordsTraits> tail_;             ///< an element of any type per rank
  HostQueue queue_{HostQueue::Mode::worker_thread};  // uses the others: destroyed first
};

}  // namespace dstrain::comm
