#include "runtime/backend/cpu_backend.h"

#include "runtime/device/cpu_stream.h"

namespace dstrain {

std::unique_ptr<Stream> CpuBackend::make_stream(StreamUse use) {
  return std::make_unique<CpuStream>(use == StreamUse::computing ? CpuStream::Mode::inline_on_caller
                                                                 : CpuStream::Mode::worker_thread);
}

}  // namespace dstrain
