#include "runtime/ops/copy_finite.h"
#include "runtime/ops/cuda/copies.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/cuda/op_state.h"

namespace dstrain::ops::gpu {
namespace {

/// All threads write the same value, so they need no atomics.
template <class Bits>
struct FindNotFinite {
  static constexpr int numel = pack_numel<Bits>;
  const Bits* values;
  Bits exponent;  ///< mask of the exponent bits
  std::int32_t* found;
  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    bool any = false;
    for (const Bits value : load<n>(values, i).at) any |= (value & exponent) == exponent;
    if (any) *found = 1;
  }
};

void find_not_finite(const TensorView& values, std::int32_t* found, StreamView stream) {
  const std::int64_t numel = values.numel();
  if (values.dtype() == DType::f32) {
    const FindNotFinite<std::uint32_t> body{elements<std::uint32_t>(values), 0x7F800000U, found};
    return for_packs("copy_finite", numel, are_aligned(body.values), body, stream);
  }
  const std::uint16_t exponent = values.dtype() == DType::f16 ? 0x7C00U : 0x7F80U;
  const FindNotFinite<std::uint16_t> body{elements<std::uint16_t>(values), exponent, found};
  for_packs("copy_finite", numel, are_aligned(body.values), body, stream);
}

}  // namespace

void copy_finite(const CopyFiniteArgs& args, StreamView stream) {
  copy_bytes("copy_finite", either_side(args.source), either_side(args.target), args.source.bytes(),
             stream);
  if (args.not_finite.device().kind == DeviceKind::cuda) {
    return find_not_finite(args.source, elements<std::int32_t>(args.not_finite), stream);
  }
  std::int32_t* const flag = &op_state(stream).words().flag;
  const Bytes bytes = args.not_finite.bytes();
  copy_bytes("copy_finite", either_side(args.not_finite), flag, bytes, stream);
  find_not_finite(args.source, flag, stream);
  copy_bytes("copy_finite", flag, either_side(args.not_finite), bytes, stream);
}

}  // namespace dstrain::ops::gpu
