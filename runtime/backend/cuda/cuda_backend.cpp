#include "runtime/backend/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>

#include "runtime/backend/cuda/gpu_identity.h"
#include "runtime/base/log.h"
#include "runtime/comm/nccl/connect_nccl.h"
#include "runtime/comm/self/device_self_communicator.h"
#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/cuda/cuda_stream_clock.h"
#include "runtime/device/cuda/nvtx.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/product.h"
#include "runtime/ops/cuda/product_tuning.h"

namespace dstrain::cuda {
namespace {

int choose_gpu(Device device) {
  int count = 0;
  DSTRAIN_CUDA_CHECK(cudaGetDeviceCount(&count), "device {}", device.index);
  if (count == 0) fail(ErrorCode::device, "no GPU is visible: see CUDA_VISIBLE_DEVICES");
  return device.index % count;
}

/// Fails unless the kernels were compiled for the calling thread's GPU.
void require_kernel_code(int ordinal) {
  if (ops::gpu::has_kernel_code()) return;
  cudaDeviceProp properties{};
  DSTRAIN_CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal), "GPU {}", ordinal);
  fail(ErrorCode::device,
       "GPU {}, {}, has compute capability {}.{}, for which this build has no kernels; build with "
       "-DCMAKE_CUDA_ARCHITECTURES={}{}",
       ordinal, properties.name, properties.major, properties.minor, properties.major,
       properties.minor);
}

/// Returns nothing if the driver's library is missing or does not know the GPU.
std::optional<GpuSensors> sensors_of(int ordinal) {
  cudaDeviceProp properties{};
  DSTRAIN_CUDA_CHECK(cudaGetDeviceProperties(&properties, ordinal), "GPU {}", ordinal);
  const Result<GpuSensors> found =
      GpuSensors::at(fmt::format("{:08x}:{:02x}:{:02x}.0", properties.pciDomainID,
                                 properties.pciBusID, properties.pciDeviceID));
  return found.ok() ? std::optional(found.value()) : std::nullopt;
}

/// Adds what the driver reports of the GPU, which arrives a moment later, to the errors of failed
/// calls.
void report_errors_of(const GpuSensors& gpu) {
  constexpr double wait_seconds = 0.2;
  set_driver_report([watch = std::make_shared<GpuErrorWatch>(gpu)] {
    std::string text;
    for (const std::uint64_t number : watch->take(wait_seconds)) {
      if (!text.empty()) text += ", ";
      text += describe_xid(number);
    }
    return text;
  });
}

}  // namespace

CudaBackend::CudaBackend(Device device)
    : Backend(device), ordinal_(choose_gpu(device)), memory_(device, ordinal_) {
  // Waiting threads poll and yield: waking up by an interrupt takes milliseconds on a virtual
  // machine.
  DSTRAIN_CUDA_CHECK(cudaInitDevice(ordinal_, cudaDeviceScheduleYield, cudaInitDeviceFlagsAreValid),
                     "GPU {}", ordinal_);
  use_gpu(ordinal_);
  require_kernel_code(ordinal_);
  sensors_ = sensors_of(ordinal_);
  if (sensors_) report_errors_of(*sensors_);
}

CudaBackend::~CudaBackend() {
  set_driver_report(nullptr);
  cudaSetDevice(ordinal_);
  cudaDeviceReset();
}

const ops::OpTable& CudaBackend::op_table() const {
  return ops::cuda_op_table();
}

Bytes CudaBackend::free_memory() {
  use_gpu(ordinal_);
  std::size_t free = 0;
  std::size_t total = 0;
  DSTRAIN_CUDA_CHECK(cudaMemGetInfo(&free, &total), "GPU {}", ordinal_);
  return static_cast<Bytes>(free);
}

std::optional<GpuReading> CudaBackend::read_sensors() {
  const bool is_first_on_gpu = device().index == ordinal_;
  return sensors_ && is_first_on_gpu ? std::optional(sensors_->read()) : std::nullopt;
}

std::unique_ptr<MemoryResource> CudaBackend::pinned(MemoryResource& host) {
  return std::make_unique<PinnedMemory>(host, ordinal_);
}

std::unique_ptr<Stream> CudaBackend::make_stream(StreamUse use) {
  const auto priority =
      use == StreamUse::computing ? CudaStream::Priority::low : CudaStream::Priority::high;
  return std::make_unique<CudaStream>(device(), ordinal_, priority);
}

void CudaBackend::use_tf32(StreamView stream) {
  ops::gpu::use_tf32(stream);
}

std::string CudaBackend::tune_products(StreamView stream, Bytes room) {
  return ops::gpu::tune_products(stream, memory_, room);
}

std::string CudaBackend::use_algorithms(const std::string& text, StreamView stream) {
  return ops::gpu::use_algorithms(text, stream);
}

Backend::ProductCount CudaBackend::count_products(StreamView stream) {
  const auto [all, chosen] = ops::gpu::count_products(stream);
  return {.all = all, .chosen = chosen};
}

std::unique_ptr<StreamClock> CudaBackend::make_stream_clock(const Clock& host) {
  return std::make_unique<CudaStreamClock>(ordinal_, host);
}

HostRanges* CudaBackend::host_ranges() {
  return nvtx_ranges();
}

std::unique_ptr<comm::Communicator> CudaBackend::connect(HostSide host) {
  comm::ControlGroup& control = host.control;
  if (control.size() == 1) {
    return comm::make_device_self_communicator(std::move(host.communicator));
  }
  const comm::NcclPresence nccl = comm::find_nccl();
  const GpuIdentity own = identity_of_gpu(ordinal_, nccl.obstacle);
  const std::string obstacle = obstacle_to_nccl(gather_identities(own, control));
  if (control.rank() == 0) {
    if (obstacle.empty()) {
      log_info(fmt::format("collectives go through NCCL {}", nccl.version));
    } else {
      log_warning(fmt::format("collectives go through host memory: {}", obstacle));
    }
  }
  if (!obstacle.empty()) return Backend::connect(std::move(host));
  return comm::make_nccl_communicator(
      {.control = control.split({.color = 0, .key = control.rank()}),
       .gpu = ordinal_,
       .timeout_seconds = host.timeout_seconds,
       .host = std::move(host.communicator)});
}

}  // namespace dstrain::cuda
