#pragma once
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include <cuda_runtime_api.h>

#include "runtime/base/unique_handle.h"
#include "runtime/device/cuda/late_failure.h"
#include "runtime/device/stream.h"

namespace dstrain::cuda {

struct StreamTraits {
  using Raw = cudaStream_t;
  static constexpr cudaStream_t null() noexcept { return nullptr; }
  static void release(cudaStream_t stream) noexcept { cudaStreamDestroy(stream); }
};
struct EventTraits {
  using Raw = cudaEvent_t;
  static constexpr cudaEvent_t null() noexcept { return nullptr; }
  static void release(cudaEvent_t event) noexcept { cudaEventDestroy(event); }
};

/// A stream of one GPU. Work launched after a failure that the host knows of is dropped. Work that
/// the GPU already has still runs, but nothing uses its results.
///
/// The GPU never waits for the host: to make a stream wait for a point of the host, the caller
/// itself waits. CUDA loads a kernel at its first launch, which needs an idle GPU, and blocks the
/// CUDA calls of all other threads meanwhile; so does freeing memory. If the GPU became idle only
/// after a call by another thread, that would deadlock.
class CudaStream final : public Stream {
 public:
  /// Blocks of kernels in a high-priority stream start before waiting blocks of low priority, so
  /// that collectives and copies do not queue behind computation.
  enum class Priority { low, high };
  /// `ordinal` is CUDA's number of the GPU.
  CudaStream(Device device, int ordinal, Priority priority = Priority::low);
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  CudaStream(CudaStream&&) = delete;
  CudaStream& operator=(CudaStream&&) = delete;
  ~CudaStream() override;

  [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
  [[nodiscard]] cudaStream_t handle() const noexcept { return handle_.get(); }
  /// For code that launches: makes the GPU current in the calling thread. Returns whether the
  /// stream has failed, so that nothing may be launched.
  [[nodiscard]] bool drops();
  /// For code that launches work that may fail later. Once `failure` is set, the stream counts as
  /// failed until synchronize() reports it; so do streams that wait for points recorded from now
  /// on.
  void fail_when(const std::shared_ptr<const LateFailure>& failure);

  void synchronize() override;
  [[nodiscard]] std::exception_ptr failure() const override;
  void wait_until_idle() noexcept override;

  /// Data that the ops keep for the work of one stream.
  class Kept {
   public:
    Kept() = default;
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    Kept(Kept&&) = delete;
    Kept& operator=(Kept&&) = delete;
    virtual ~Kept() = default;
  };
  /// Returns the stream's only T, made on first use. For code that launches.
  template <class T>
  T& kept() {
    if (kept_ == nullptr) kept_ = std::make_unique<T>(*this);
    return dynamic_cast<T&>(*kept_);
  }

 private:
  using LateFailures = std::vector<std::shared_ptr<const LateFailure>>;
  class Point;
  std::shared_ptr<EventPoint> record() override;
  void wait_for(std::shared_ptr<EventPoint> point) override;
  void fail_with(std::exception_ptr failure);
  void add_late(const std::shared_ptr<const LateFailure>& failure);
  static std::exception_ptr first_of(const std::exception_ptr& known, const LateFailures& late);

  int ordinal_;
  UniqueHandle<StreamTraits> handle_;
  mutable std::mutex mutex_;
  std::exception_ptr failure_;  ///< guarded; the first
  LateFailures late_;           ///< guarded; of work launched or waited for
  std::unique_ptr<Kept> kept_;
};

}  // namespace dstrain::cuda
