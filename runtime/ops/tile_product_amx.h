#pragma once
#include <cstdint>

#include "runtime/ops/tile_product.h"

namespace dstrain::ops {

/// Whether this machine and its kernel offer AMX's bf16 products; asks the kernel once.
bool has_amx_products();

/// The product with a and b rounded to bf16 and f32 sums, through AMX. All sizes are
/// multiples of 16, and a or its transpose has contiguous rows.
void amx_product(const TileProduct& tile, Into into);

/// Sets AMX up for the products of the calling thread, and lets it go. They nest.
void begin_amx_products();
void end_amx_products();

/// See tile_product.h.
void amx_pack_left(const TileOperand& a, std::uint32_t* packed);
void amx_pack_right(const TileOperand& b, std::uint32_t* packed);

}  // namespace dstrain::ops
