// A plug-in in the place of libdstrain_cuda.so, whose device does not start.
#include "runtime/backend/backend.h"
#include "runtime/base/error.h"

namespace {

std::unique_ptr<dstrain::Backend> start(dstrain::Device device) {
  dstrain::fail(dstrain::ErrorCode::device, "device {}: no driver is loaded", device.index);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) dstrain::BackendEntry dstrain_backend() {
  return {.version = DSTRAIN_VERSION, .start = start};
}
