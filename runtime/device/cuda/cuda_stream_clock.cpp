#include "runtime/device/cuda/cuda_stream_clock.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_stream_access.h"

namespace dstrain::cuda {
namespace {

/// Number of comparisons. The first may wait for the GPU to wake up, or for work in the same
/// hardware queue.
constexpr int tries = 4;

/// The object of the calls, for messages.
constexpr const char* timed = "an event of GPU {}, for the times of --profile";

}  // namespace

CudaStreamClock::CudaStreamClock(int ordinal, const Clock& host) : ordinal_(ordinal), host_(host) {
  use_gpu(ordinal);
  cudaStream_t stream = nullptr;
  DSTRAIN_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "GPU {}", ordinal);
  stream_ = UniqueHandle<StreamTraits>(stream);
  compare();
}

CudaStreamClock::EventHandle CudaStreamClock::make_event() const {
  cudaEvent_t event = nullptr;
  DSTRAIN_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDefault), timed, ordinal_);
  return EventHandle(event);
}

std::shared_ptr<CudaStreamClock::Anchor> CudaStreamClock::unused_anchor() {
  for (const auto& anchor : anchors_) {
    if (anchor.use_count() == 1) return anchor;
  }
  anchors_.push_back(std::make_shared<Anchor>());
  anchors_.back()->event = make_event();
  return anchors_.back();
}

/// The GPU passes the event between the two readings of the host clock.
void CudaStreamClock::measure(Anchor& anchor) const {
  const double before = host_.now_seconds();
  DSTRAIN_CUDA_CHECK(cudaEventRecord(anchor.event.get(), stream_.get()), timed, ordinal_);
  DSTRAIN_CUDA_CHECK(cudaEventSynchronize(anchor.event.get()), timed, ordinal_);
  const double after = host_.now_seconds();
  anchor.seconds = (before + after) / 2;
  anchor.error_seconds = (after - before) / 2;
}

double CudaStreamClock::seconds_between(const EventHandle& first, const EventHandle& second) const {
  float milliseconds = 0;
  DSTRAIN_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, first.get(), second.get()), timed,
                     ordinal_);
  return static_cast<double>(milliseconds) / 1e3;
}

void CudaStreamClock::compare() {
  use_gpu(ordinal_);
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Anchor> best = unused_anchor();
  std::shared_ptr<Anchor> other = unused_anchor();
  measure(*best);
  for (int i = 1; i < tries; ++i) {
    measure(*other);
    if (other->error_seconds < best->error_seconds) std::swap(best, other);
  }
  double drift = 0;
  if (anchor_) {
    const double expected = anchor_->seconds + seconds_between(anchor_->event, best->event);
    drift = std::abs(best->seconds - expected);
  }
  error_seconds_ = std::max(error_seconds_, best->error_seconds + drift);
  anchor_ = std::move(best);
}

double CudaStreamClock::error_seconds() const {
  const std::lock_guard lock(mutex_);
  return error_seconds_;
}

void CudaStreamClock::record(StampedEvent& stamped, StreamView stream) {
  use_gpu(ordinal_);
  if (!stamped.event) stamped.event = make_event();
  stamped.anchor = anchor_;
  DSTRAIN_CUDA_CHECK(cudaEventRecord(stamped.event.get(), cuda_stream(stream).handle()), timed,
                     ordinal_);
}

StreamClock::Stamp CudaStreamClock::stamp(StreamView stream) noexcept {
  const std::lock_guard lock(mutex_);
  Stamp stamp = stamped_.size();
  try {
    if (free_.empty()) {
      stamped_.emplace_back();
    } else {
      stamp = free_.back();
      free_.pop_back();
    }
    record(stamped_[stamp], stream);
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  return stamp;
}

/// Call with the lock held. After a failure a stamp may have no event.
cudaEvent_t CudaStreamClock::event_of(Stamp stamp) const {
  if (failure_) std::rethrow_exception(failure_);
  return stamped_[stamp].event.get();
}

std::optional<double> CudaStreamClock::seconds(Stamp stamp) {
  use_gpu(ordinal_);
  const std::lock_guard lock(mutex_);
  const cudaError_t reached = cudaEventQuery(event_of(stamp));
  if (reached == cudaErrorNotReady) return std::nullopt;
  if (reached != cudaSuccess) {
    fail_call(reached, "cudaEventQuery", fmt::format(timed, ordinal_));
  }
  StampedEvent& stamped = stamped_[stamp];
  const double since = seconds_between(stamped.anchor->event, stamped.event);
  const double seconds = stamped.anchor->seconds + since;
  stamped.anchor = nullptr;
  free_.push_back(stamp);
  return seconds;
}

void CudaStreamClock::wait_for(Stamp stamp) {
  use_gpu(ordinal_);
  cudaEvent_t event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    event = event_of(stamp);
  }
  DSTRAIN_CUDA_CHECK(cudaEventSynchronize(event), timed, ordinal_);
}

}  // namespace dstrain::cuda
