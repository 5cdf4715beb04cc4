#pragma once
#include "runtime/backend/backend.h"
#include "runtime/device/cuda/cuda_memory.h"

namespace dstrain::cuda {

/// One GPU. Ranks beyond the number of GPUs share them, in turns.
class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(Device device);
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;
  CudaBackend(CudaBackend&&) = delete;
  CudaBackend& operator=(CudaBackend&&) = delete;
  /// Gives back what the driver holds for this process.
  ~CudaBackend() override;

  [[nodiscard]] const ops::OpTable& op_table() const override;
  [[nodiscard]] MemoryResource& memory() override { return memory_; }
  [[nodiscard]] Bytes free_memory() override;
  [[nodiscard]] std::optional<GpuReading> read_sensors() override;
  [[nodiscard]] std::unique_ptr<MemoryResource> pinned(MemoryResource& host) override;
  [[nodiscard]] std::unique_ptr<Stream> make_stream(StreamUse use) override;
  void use_tf32(StreamView stream) override;
  [[nodiscard]] std::string tune_products(StreamView stream, Bytes room) override;
  [[nodiscard]] std::string use_algorithms(const std::string& text, StreamView stream) override;
  [[nodiscard]] ProductCount count_products(StreamView stream) override;
  [[nodiscard]] std::unique_ptr<StreamClock> make_stream_clock(const Clock& host) override;
  [[nodiscard]] HostRanges* host_ranges() override;
  /// By NCCL, where every rank has it and a GPU of its own; else through the host. Rank 0 says
  /// which, and why. One rank alone needs neither.
  [[nodiscard]] std::unique_ptr<comm::Communicator> connect(HostSide host) override;

 private:
  int ordinal_;
  DeviceMemory memory_;
  std::optional<GpuSensors> sensors_;  ///< none: the driver's library does not tell
};

}  // namespace dstrain::cuda
