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

/// A stream of one GPU. What is launched after a failure that the host knows of is dropped; what
/// the GPU had been given before runs, and nobody sees what it makes.
///
/// The GPU never waits for the host: who makes a stream wait for a point of the host waits for it
/// itself. CUDA loads a kernel at its first launch, for which the GPU must come to rest, and lets
/// no thread of the process into its calls meanwhile; releasing memory is alike. With a GPU that
/// rests only once another thread has made its calls, that would be for ever.
class CudaStream final : public Stream {
 public:
  /// Blocks of kernels in a stream of high priority start before those that wait in one of low
  /// priority, so that collectives and copies do not queue behind the computation.
  enum class Priority { low, high };
  /// `ordinal`: by which CUDA knows the GPU.
  CudaStream(Device device, int ordinal, Priority priority = Priority::low);
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  CudaStream(CudaStream&&) = delete;
  CudaStream& operator=(CudaStream&&) = delete;
  ~CudaStream() override;

  [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
  [[nodiscard]] cudaStream_t handle() const noexcept { return handle_.get(); }
  /// For who launches: makes the GPU the calling thread's, and says whether the stream has failed,
  /// so that nothing is to be launched.
  [[nodiscard]] bool drops();
  /// For who launches what may fail later: until synchronize() tells it, the stream has failed when
  /// `failure` is set, and so have those that wait for points recorded from now on.
  void fail_when(const std::shared_ptr<const LateFailure>& failure);

  void synchronize() override;
  [[nodiscard]] std::exception_ptr failure() const override;
  void wait_until_idle() noexcept override;

  /// What the ops keep for the work of one stream.
  class Kept {
   public:
    Kept() = default;
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    Kept(Kept&&) = delete;
    Kept& operator=(Kept&&) = delete;
    virtual ~Kept() = default;
  };
  /// The one T of this stream, made of it when it is first asked for. For who launches.
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
  LateFailures late_;           ///< guarded; of what was launched or waited for
  std::unique_ptr<Kept> kept_;
};

}  // namespace dstrain::cuda
