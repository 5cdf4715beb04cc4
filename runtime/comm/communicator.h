#pragma once
#include <memory>

#include "runtime/comm/collective_observer.h"
#include "runtime/device/memory_resource.h"
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::comm {

/// The order in which a communicator adds.
enum class SumOrder {
  by_rank,  ///< ((x_0 + x_1) + x_2) + ...: the same bits on every rank, in every run, everywhere
  library,  ///< the order of the library that adds: the same bits on every rank, nothing more
};

/// Collectives of tensors over the ranks of one group; other data goes through a ControlGroup.
/// Every rank calls the same operations in the same order. Operations are ordered on `stream`; the
/// views must stay valid until they have run. One thread launches, and work of one communicator
/// runs on one stream at a time: synchronise before changing the stream. Errors of an operation
/// come out where it runs: from the call on an inline stream, from synchronize() on a worker
/// stream. A communicator must outlive the stream work launched through it: synchronise the stream
/// before destroying it. Views are dense and of one dtype; only numel matters, not the shape; zero
/// elements are allowed, and size 1 is the identity. Sums of f32, bf16 and f16 add two values at a
/// time in fp32, in the order that sum_order() tells, and round each result to the dtype, to
/// nearest even; sums of i32 and i64 wrap around.
/// Bytes on the wire per rank, for n bytes of `whole` over N ranks: all_gather, reduce_scatter and
/// all_to_all (N-1)/N n, all_reduce twice that.
///
/// After an Error{timeout}, Error{comm} or Error{aborted} a communicator may only be aborted and
/// destroyed.
class Communicator {
 public:
  virtual ~Communicator() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  [[nodiscard]] virtual SumOrder sum_order() const = 0;

  /// Memory whose tensors the collectives of this communicator move without staging. Any other
  /// memory works too, on some ranks or all. Free all of it before the communicator is destroyed.
  /// Host memory if no other is faster.
  [[nodiscard]] virtual MemoryResource& memory() { return host_memory_; }

  /// whole[r] = shard of rank r, for each r; whole has size() times the elements of shard. `shard`
  /// may be this rank's own part of `whole`.
  virtual void all_gather(TensorView shard, TensorView whole, StreamView stream) = 0;
  /// shard = sum over ranks r of whole_r[rank()]; f32, bf16, f16, i32 or i64. `shard` may be this
  /// rank's own part of `whole`; the rest of `whole` is left unspecified.
  virtual void reduce_scatter(TensorView whole, TensorView shard, StreamView stream) = 0;
  /// values = sum over ranks of values; f32, bf16, f16, i32 or i64. The bits are those of
  /// reduce_scatter followed by all_gather.
  virtual void all_reduce(TensorView values, StreamView stream) = 0;
  /// received[r] = parts_r[rank()], for each rank r; both hold size() parts, and share no memory.
  virtual void all_to_all(TensorView parts, TensorView received, StreamView stream) = 0;
  /// values = the values of rank `root`.
  virtual void broadcast(TensorView values, int root, StreamView stream) = 0;
  /// Ordered per pair of ranks. send() is done when `values` may be reused, and may have to wait
  /// for the matching receive(), which has the same numel and dtype. No rank sends to itself.
  virtual void send(TensorView values, int target, StreamView stream) = 0;
  virtual void receive(TensorView values, int source, StreamView stream) = 0;

  /// Returns the communicator of the ranks that give the same `color`, ordered by `key`, then by
  /// rank. Every rank of this one calls it after its earlier work is done. Runs on the host.
  struct Split {
    int color = 0;
    int key = 0;
  };
  virtual std::unique_ptr<Communicator> split(Split split) = 0;

  /// Makes every blocked or later operation of this group fail with Error{aborted}, on all ranks
  /// it can reach. Thread-safe.
  virtual void abort() noexcept = 0;

  /// Sets the observer of operations from now on, but not of those of communicators from split().
  /// It must outlive their work. Null: no observer.
  virtual void set_observer(CollectiveObserver* observer) { observer_ = observer; }

 protected:
  [[nodiscard]] CollectiveObserver* observer() const { return observer_; }
  /// Calls `give`, which launches the operation on a stream of a device, and tells the observer.
  template <class Give>
  void launch_observed(const Call& call, StreamView stream, const Give& give) const {
    if (observer_ != nullptr) observer_->launch(call, stream);
    give();
    if (observer_ != nullptr) observer_->launched(call, stream);
  }

 private:
  HostMemory host_memory_;
  CollectiveObserver* observer_ = nullptr;
};

}  // namespace dstrain::comm
