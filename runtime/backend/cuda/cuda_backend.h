#pragma once
#include "runtime/backend/backend.h"
#include "runtime/device/cuda/cuda_memory.h"

namespace dstrain::cuda {

/// One GPU. If there are more ranks than GPUs, they share them round-robin.
class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(Device device);
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;
  CudaBackend(CudaBackend&&) = delete;
  CudaBackend& operator=(CudaBackend&&) = delete;
  /// Releases what the driver holds for this process.
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
  /// Uses NCCL if every rank has it and a GPU of its own, else goes through the host. Rank 0 logs
  /// which, and why. A single rank needs neither.
  [[nodiscard]] std::unique_ptr<comm::Communicator> connect(HostSide host) override;

 private:
  int ordinal_;
  DeviceMemory memory_;
  std::optional<GpuSensors> sensors_;  ///< nothing: the driver's library cannot tell
};

}  // namespace dstrain::cuda
