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

/// What is faster on this CPU. Intel's VDPBF16PS runs at half the rate of f32 FMA, AMD's at twice
/// it; AMX is faster than both.
Bf16Products preferred_bf16_products();

/// How a stream's products are computed from now on, instead of the way that is preferred: for who
/// tests both.
void use_bf16_products(Bf16Products products, StreamView stream);

/// Each shape of a product is prepared once (a oneDNN primitive) and kept by its stream while it is
/// among the last that were used: a training step uses some dozens, again and again; generating
/// uses others for each token.
inline constexpr std::size_t prepared_products_max = 256;
/// Products that a stream keeps, none of which is under way.
std::size_t prepared_products(StreamView stream);

}  // namespace dstrain::ops::cpu
