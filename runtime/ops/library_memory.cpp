#include "runtime/ops/library_memory.h"

#include "runtime/base/error.h"

namespace dstrain::ops {

std::string_view library_memory(DeviceKind device) {
  switch (device) {
    case DeviceKind::cpu:
      return "oneDNN's scratchpad, about 1 MiB a thread, and the code it generates";
    case DeviceKind::cuda:
      return "the CUDA context, the code of cuBLASLt and NCCL, NCCL's buffers, and 4 MiB for "
             "each stream that converts, or has gradients of norms: hundreds of MiB";
  }
  fail(ErrorCode::internal, "no such kind of device");
}

Bytes library_bytes(DeviceKind device, int ranks) {
  constexpr Bytes code = 256 * mebibyte;
  constexpr Bytes nccl = 512 * mebibyte;
  if (device == DeviceKind::cpu) return 0;
  return code + (ranks > 1 ? nccl : 0);
}

}  // namespace dstrain::ops
