#include "runtime/device/cuda/cuda_stream.h"

#include <algorithm>
#include <utility>

#include "runtime/device/cuda/cuda_check.h"

namespace dstrain::cuda {
namespace {

std::exception_ptr error_of(cudaError_t error, const char* call, int ordinal) {
  try {
    fail_call(error, call, fmt::format("a stream of GPU {}", ordinal));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

/// A point in a stream of a GPU.
class CudaStream::Point final : public EventPoint {
 public:
  Point(int ordinal, cudaEvent_t event, std::exception_ptr failure, LateFailures late)
      : ordinal_(ordinal),
        event_(event),
        failure_(std::move(failure)),  // NOLINT(bugprone-throw-keyword-missing): it is kept
        late_(std::move(late)) {}
  void wait() override {
    use_gpu(ordinal_);
    DSTRAIN_CUDA_CHECK(cudaEventSynchronize(event_.get()), "an event of GPU {}", ordinal_);
    if (const auto failed = first_of(failure_, late_)) std::rethrow_exception(failed);
  }
  [[nodiscard]] cudaEvent_t event() const { return event_.get(); }
  [[nodiscard]] const std::exception_ptr& failure() const { return failure_; }
  [[nodiscard]] const LateFailures& late() const { return late_; }

 private:
  int ordinal_;
  UniqueHandle<EventTraits> event_;
  const std::exception_ptr failure_;  ///< before the point
  const LateFailures late_;           ///< of the work before the point
};

CudaStream::CudaStream(Device device, int ordinal, Priority priority)
    : Stream(device), ordinal_(ordinal) {
  use_gpu(ordinal);
  int lowest = 0;
  int highest = 0;
  DSTRAIN_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "GPU {}", ordinal);
  cudaStream_t stream = nullptr;
  DSTRAIN_CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                                  priority == Priority::high ? highest : lowest),
                     "GPU {}", ordinal);
  handle_ = UniqueHandle<StreamTraits>(stream);
}

CudaStream::~CudaStream() {
  wait_until_idle();
}

bool CudaStream::drops() {
  use_gpu(ordinal_);
  const std::lock_guard lock(mutex_);
  return first_of(failure_, late_) != nullptr;
}

void CudaStream::fail_when(const std::shared_ptr<const LateFailure>& failure) {
  const std::lock_guard lock(mutex_);
  add_late(failure);
}

void CudaStream::synchronize() {
  use_gpu(ordinal_);
  DSTRAIN_CUDA_CHECK(cudaStreamSynchronize(handle()), "a stream of GPU {}", ordinal_);
  std::exception_ptr failed;
  {
    const std::lock_guard lock(mutex_);
    failed = first_of(failure_, late_);
    failure_ = nullptr;
    std::erase_if(late_, [](const auto& late) { return late->get() != nullptr; });
  }
  if (failed) std::rethrow_exception(failed);
}

std::exception_ptr CudaStream::failure() const {
  {
    const std::lock_guard lock(mutex_);
    if (auto failed = first_of(failure_, late_)) return failed;
  }
  const cudaError_t error = cudaStreamQuery(handle());
  if (error == cudaSuccess || error == cudaErrorNotReady) return nullptr;
  return error_of(error, "cudaStreamQuery", ordinal_);
}

void CudaStream::wait_until_idle() noexcept {
  cudaSetDevice(ordinal_);
  cudaStreamSynchronize(handle());  // synchronize() reports a failure
}

std::shared_ptr<EventPoint> CudaStream::record() {
  use_gpu(ordinal_);
  cudaEvent_t event = nullptr;
  DSTRAIN_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "GPU {}", ordinal_);
  const std::lock_guard lock(mutex_);
  auto point = std::make_shared<Point>(ordinal_, event, failure_, late_);
  DSTRAIN_CUDA_CHECK(cudaEventRecord(event, handle()), "a stream of GPU {}", ordinal_);
  return point;
}

void CudaStream::wait_for(std::shared_ptr<EventPoint> point) {
  const auto own = std::dynamic_pointer_cast<Point>(point);
  if (!own) {
    try {
      point->wait();
    } catch (...) {
      fail_with(std::current_exception());
    }
    return;
  }
  use_gpu(ordinal_);
  DSTRAIN_CUDA_CHECK(cudaStreamWaitEvent(handle(), own->event(), 0), "a stream of GPU {}",
                     ordinal_);
  fail_with(own->failure());
  const std::lock_guard lock(mutex_);
  for (const auto& late : own->late()) add_late(late);
}

/// Does nothing if `failure` is null.
void CudaStream::fail_with(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
}

/// Call with the lock held.
void CudaStream::add_late(const std::shared_ptr<const LateFailure>& failure) {
  if (std::ranges::find(late_, failure) == late_.end()) late_.push_back(failure);
}

std::exception_ptr CudaStream::first_of(const std::exception_ptr& known, const LateFailures& late) {
  if (known) return known;
  for (const auto& one : late) {
    if (auto failed = one->get()) return failed;
  }
  return nullptr;
}

}  // namespace dstrain::cuda
