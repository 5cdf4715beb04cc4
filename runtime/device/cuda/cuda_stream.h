#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include <cuda_runtime_api.h>

#include "runtime/base/unique_handle.h"
#include "runtime/device/cuda/host_gates.h"
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

/// What may have failed before a point of a stream: gates of the host that were passed, or will
/// be. Not thread-safe.
class Fate {
 public:
  void add(std::shared_ptr<HostGates::Gate> gate) { gates_.push_back(std::move(gate)); }
  /// What the stream of `other` has failed with, this one fails with.
  void add(const Fate& other);
  void fail(std::exception_ptr failure) { failure_ = std::move(failure); }
  /// Of an error, or of a gate that was opened with one; null: of none by now.
  [[nodiscard]] std::exception_ptr failure();
  /// Lets go of gates that were opened, and keeps what they were opened with.
  void settle();
  /// The same as failure(), and forgets it.
  std::exception_ptr take_failure();

 private:
  std::vector<std::shared_ptr<HostGates::Gate>> gates_;
  std::exception_ptr failure_;
};

/// A stream of one GPU. What is launched after a failure that the host knows of is dropped; what
/// the GPU had been given before runs, and nobody sees what it makes.
class CudaStream final : public Stream {
 public:
  /// `ordinal`: by which CUDA knows the GPU.
  CudaStream(Device device, int ordinal);
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
  class Point;
  std::shared_ptr<EventPoint> record() override;
  void wait_for(std::shared_ptr<EventPoint> point) override;
  void wait_for_host(EventPoint& point);

  int ordinal_;
  UniqueHandle<StreamTraits> handle_;
  std::shared_ptr<HostGates> gates_;  // shared with what opens them
  mutable std::mutex mutex_;
  mutable Fate fate_;  ///< guarded
  std::unique_ptr<Kept> kept_;
};

}  // namespace dstrain::cuda
