#pragma once
#include <cstdint>

#include "runtime/ops/tile_product.h"

namespace dstrain::ops {

/// The product with a and b rounded to bf16 and f32 sums, through AMX, where the machine has
/// it. All sizes are multiples of 16, and a or its transpose has contiguous rows.
void amx_product(const TileProduct& tile, Into into);

}  // namespace dstrain::ops
