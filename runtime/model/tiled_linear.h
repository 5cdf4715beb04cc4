#pragma once
#include "runtime/model/linear.h"

namespace dstrain::model {

/// Rows of each tile but the last.
std::int64_t tile_rows(std::int64_t rows, std::int64_t splits);

/// Bytes for the columns of an input that belong to a tile, the f32 sum over the tiles when outputs
/// are rounded, and the products of a tile.
Bytes tiled_workspace(const LinearSizes& sizes, DType dtype);

// What linear.h says, with one tile of the weight after another: in order in forward, the last one
// first in backward.
void tiled_forward(const LinearArgs& args, const Products& products, StreamView stream);
void tiled_backward_weight(const LinearParameterGradients& args,
                           const Products& products,
                           StreamView stream);
void tiled_backward_input(const LinearInputGradient& args,
                          const Products& products,
                          StreamView stream);

}  // namespace dstrain::model
