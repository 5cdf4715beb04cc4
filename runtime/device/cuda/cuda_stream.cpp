#include "runtime/device/cuda/cuda_stream.h"

#include <cuda.h>

#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/host_point.h"

namespace dstrain::cuda {
namespace {

using WaitValue = CUresult (*)(CUstream stream,
                               CUdeviceptr address,
                               cuuint32_t value,
                               unsigned flags);

/// The driver's, found when it is first asked for: programs start without a driver. Null where it
/// has none.
WaitValue wait_value() {
  static const WaitValue found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &function,
                                                               12000, cudaEnableDefault, &result);
    if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) return WaitValue{};
    return reinterpret_cast<WaitValue>(function);
  }();
  return found;
}

std::exception_ptr error_of(cudaError_t error, const char* call, int ordinal) {
  try {
    fail_call(error, call, fmt::format("a stream of GPU {}", ordinal));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

void Fate::add(const Fate& other) {
  gates_.insert(gates_.end(), other.gates_.begin(), other.gates_.end());
  if (!failure_) failure_ = other.failure_;
}

void Fate::settle() {
  std::erase_if(gates_, [this](const std::shared_ptr<HostGates::Gate>& gate) {
    if (!gate->is_open()) return false;
    if (!failure_) failure_ = gate->failure();
    return true;
  });
}

std::exception_ptr Fate::failure() {
  settle();
  return failure_;
}

std::exception_ptr Fate::take_failure() {
  settle();
  return std::exchange(failure_, std::exception_ptr());
}

/// A point in a stream of a GPU.
class CudaStream::Point final : public EventPoint {
 public:
  Point(int ordinal, cudaEvent_t event, Fate fate)
      : ordinal_(ordinal), event_(event), fate_(std::move(fate)) {}
  void wait() override {
    use_gpu(ordinal_);
    DSTRAIN_CUDA_CHECK(cudaEventSynchronize(event_.get()), "an event of GPU {}", ordinal_);
    Fate fate = fate_;
    if (const std::exception_ptr failed = fate.failure()) std::rethrow_exception(failed);
  }
  [[nodiscard]] cudaEvent_t event() const { return event_.get(); }
  [[nodiscard]] const Fate& fate() const { return fate_; }

 private:
  int ordinal_;
  UniqueHandle<EventTraits> event_;
  const Fate fate_;
};

CudaStream::CudaStream(Device device, int ordinal) : Stream(device), ordinal_(ordinal) {
  use_gpu(ordinal);
  cudaStream_t stream = nullptr;
  DSTRAIN_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "GPU {}", ordinal);
  handle_ = UniqueHandle<StreamTraits>(stream);
  gates_ = std::make_shared<HostGates>();
}

CudaStream::~CudaStream() {
  wait_until_idle();
}

bool CudaStream::drops() {
  use_gpu(ordinal_);
  const std::lock_guard lock(mutex_);
  return fate_.failure() != nullptr;
}

void CudaStream::synchronize() {
  use_gpu(ordinal_);
  DSTRAIN_CUDA_CHECK(cudaStreamSynchronize(handle()), "a stream of GPU {}", ordinal_);
  std::exception_ptr failed;
  {
    const std::lock_guard lock(mutex_);
    failed = fate_.take_failure();
  }
  if (failed) std::rethrow_exception(failed);
}

std::exception_ptr CudaStream::failure() const {
  {
    const std::lock_guard lock(mutex_);
    if (const std::exception_ptr failed = fate_.failure()) return failed;
  }
  const cudaError_t error = cudaStreamQuery(handle());
  if (error == cudaSuccess || error == cudaErrorNotReady) return nullptr;
  return error_of(error, "cudaStreamQuery", ordinal_);
}

void CudaStream::wait_until_idle() noexcept {
  cudaSetDevice(ordinal_);
  cudaStreamSynchronize(handle());  // what fails here comes out of synchronize()
}

std::shared_ptr<EventPoint> CudaStream::record() {
  use_gpu(ordinal_);
  cudaEvent_t event = nullptr;
  DSTRAIN_CUDA_CHECK(
      cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync), "GPU {}",
      ordinal_);
  const std::lock_guard lock(mutex_);
  fate_.settle();
  auto point = std::make_shared<Point>(ordinal_, event, fate_);
  DSTRAIN_CUDA_CHECK(cudaEventRecord(event, handle()), "a stream of GPU {}", ordinal_);
  return point;
}

void CudaStream::wait_for(std::shared_ptr<EventPoint> point) {
  use_gpu(ordinal_);
  const auto own = std::dynamic_pointer_cast<Point>(point);
  if (!own) return wait_for_host(*point);
  DSTRAIN_CUDA_CHECK(cudaStreamWaitEvent(handle(), own->event(), 0), "a stream of GPU {}",
                     ordinal_);
  const std::lock_guard lock(mutex_);
  fate_.add(own->fate());
}

void CudaStream::wait_for_host(EventPoint& point) {
  auto gate = gates_->take();
  if (gate == nullptr || wait_value() == nullptr) {  // then the calling thread waits
    Fate fate;
    try {
      point.wait();
    } catch (...) {
      fate.fail(std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    return fate_.add(fate);
  }
  dynamic_cast<HostPoint&>(point).then(
      [gate](std::exception_ptr failed) { gate->open(std::move(failed)); });
  if (!gate->is_open()) {
    const CUresult result = wait_value()(handle(), reinterpret_cast<CUdeviceptr>(gate->word()),
                                         gate->number(), CU_STREAM_WAIT_VALUE_GEQ);
    if (result != CUDA_SUCCESS) {
      fail(ErrorCode::device, "a stream of GPU {}: cuStreamWaitValue32: error {}", ordinal_,
           static_cast<int>(result));
    }
  }
  const std::lock_guard lock(mutex_);
  fate_.add(std::move(gate));
}

}  // namespace dstrain::cuda
