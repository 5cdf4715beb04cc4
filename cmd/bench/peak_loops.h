#pragma once
#include <cstdint>

namespace dstrain::bench {

/// Loops of independent arithmetic in registers, on all compute threads: nothing on this processor
/// can be faster with these instructions. They return the operations done; time them.

/// Fused multiply-adds of f32 vectors, the widest that the processor has. `rounds` per thread.
double fma_peak_flops(std::int64_t rounds);

/// Whether the processor has dot products of bf16 pairs (AVX512_BF16).
bool has_bf16_dot_products();
/// VDPBF16PS; only where there is one.
double bf16_peak_flops(std::int64_t rounds);

}  // namespace dstrain::bench
