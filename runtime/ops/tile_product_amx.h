#pragma once
#include <cstdint>

#include "runtime/ops/tile_product.h"

namespace dstrain::ops {

/// Whether this machine and its kernel offer AMX's bf16 products; asks the kernel once.
bool has_amx_products();

/// The product with a and b rounded to bf16 and f32 sums, through AMX. All sizes are
/// multiples of 16, and a or its transpose has contiguous rows.
void amx_product(const TileProduct& tile, Into into);

}  // namespace dstrain::ops
