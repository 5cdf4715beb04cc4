// The deferred device as a plug-in, which plays the part of libdstrain_cuda.so.
#include "runtime/backend/backend.h"
#include "tests/support/deferred_device.h"
#include "tests/support/deferred_ops.h"

namespace {

class DeferredBackend final : public dstrain::Backend {
 public:
  explicit DeferredBackend(dstrain::Device device)
      : Backend(device), deferred_(static_cast<std::uint64_t>(device.index) + 1) {}
  [[nodiscard]] const dstrain::ops::OpTable& op_table() const override {
    return dstrain::test::deferred_op_table();
  }
  [[nodiscard]] dstrain::MemoryResource& memory() override { return deferred_.memory(); }
  [[nodiscard]] std::unique_ptr<dstrain::Stream> make_stream(StreamUse /*use*/) override {
    return deferred_.make_stream();
  }

 private:
  dstrain::test::DeferredDevice deferred_;
};

std::unique_ptr<dstrain::Backend> start(dstrain::Device device) {
  return std::make_unique<DeferredBackend>(device);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) dstrain::BackendEntry dstrain_backend() {
  return {.version = DSTRAIN_VERSION, .start = start};
}
