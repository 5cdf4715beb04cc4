#pragma once
#include "runtime/backend/backend.h"

namespace dstrain {

/// The CPU as a device. Computing streams run on the calling thread, the others on threads of their
/// own; collectives are those of the host.
class CpuBackend final : public Backend {
 public:
  CpuBackend() : Backend(Device{}) {}
  [[nodiscard]] const ops::OpTable& op_table() const override { return ops::cpu_op_table(); }
  [[nodiscard]] MemoryResource& memory() override { return memory_; }
  [[nodiscard]] std::unique_ptr<Stream> make_stream(StreamUse use) override;
  [[nodiscard]] std::unique_ptr<comm::Communicator> connect(HostSide host) override {
    return std::move(host.communicator);
  }

 private:
  HostMemory memory_;
};

}  // namespace dstrain
