#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/device/stream.h"

namespace dstrain::ops::cpu {

/// How products with a bf16 operand are computed.
enum class Bf16Products : std::uint8_t {
  native,  ///< bf16 dot products (AVX512_BF16, AMX), summed in f32
  widened  ///< operands widened to f32 in cache, f32 products
};

/// Returns the faster way on this CPU. Intel's VDPBF16PS runs at half the rate of f32 FMA, AMD's at
/// twice it; AMX is faster than both.
Bf16Products preferred_bf16_products();

/// Sets how a stream's products are computed from now on, instead of the preferred way. For tests
/// of both.
void use_bf16_products(Bf16Products products, StreamView stream);

/// Each shape of a product is prepared once (a oneDNN primitive), and the stream keeps those used
/// most recently. A training step reuses some dozens; generation needs other shapes for each token.
inline constexpr std::size_t prepared_products_max = 256;
/// Returns how many products a stream keeps, none of them running.
std::size_t prepared_products(StreamView stream);

}  // namespace dstrain::ops::cpu
