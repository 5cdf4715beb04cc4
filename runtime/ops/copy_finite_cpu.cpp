#include <atomic>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/copy_finite.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

/// Whether all elements are finite: no exponent has all bits set.
template <class Bits>
DSTRAIN_SIMD_CLONES bool copy_kernel(const Bits* __restrict from,
                                     Bits* __restrict to,
                                     std::int64_t count,
                                     Bits exponent) {
  Bits not_finite = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const Bits value = from[i];
    to[i] = value;
    not_finite = static_cast<Bits>(not_finite | ((value & exponent) == exponent ? 1U : 0U));
  }
  return not_finite == 0;
}

template <class Bits>
void run(const CopyFiniteArgs& args, Bits exponent) {
  std::atomic<bool> finite = true;
  for_chunks(args.source.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
    if (!copy_kernel(elements<Bits>(args.source) + begin, elements<Bits>(args.target) + begin,
                     end - begin, exponent)) {
      finite = false;
    }
  });
  if (!finite) *elements<std::int32_t>(args.not_finite) = 1;
}

}  // namespace

namespace cpu {

void copy_finite(const CopyFiniteArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    if (args.source.dtype() == DType::f32) return run<std::uint32_t>(args, 0x7F800000U);
    run<std::uint16_t>(args, args.source.dtype() == DType::f16 ? 0x7C00U : 0x7F80U);
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
