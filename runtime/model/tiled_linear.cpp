#include "runtime/model/tiled_linear.h"

#include <algorithm>

#include "runtime/model/linear_products.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/copy_rows.h"
#include "runtime/tensor/arena.h"

namespace dstrain::model {
namespace {

/// How the workspace of a layer in tiles is cut.
struct TileSpace {
  TileSpace(Arena& arena, const LinearSizes& sizes, DType dtype)
      : columns(arena.take({sizes.rows, tile_rows(sizes.inputs, sizes.in_splits)}, dtype)) {
    if (dtype != DType::f32) sum = arena.take({sizes.rows, sizes.outputs});
  }
  /// (rows, tile.rows)
  [[nodiscard]] TensorView of(const ParameterTile& tile) const {
    return columns.part(0, {columns.shape()[0], tile.rows});
  }
  TensorView columns;  ///< of an input or its gradient that belong to a tile, dense
  TensorView sum;      ///< (rows, N); empty when outputs are f32
};

/// One call over the tiles of a weight.
class TiledCall {
 public:
  TiledCall(const LinearWeight& weight,
            TensorView input,
            TensorView output,
            const Products& products,
            StreamView stream)
      : weight_(weight),
        input_(as_matrix(input)),
        output_(as_matrix(output)),
        arena_(products.workspace),
        space_(arena_, sizes(), output.dtype()),
        products_{products.matmuls,
                  products.workspace.subspan(static_cast<std::size_t>(arena_.used()))},
        stream_(stream) {}

  void forward(TensorView bias) const {
    const TensorView sum = space_.sum.empty() ? output_ : space_.sum;
    for (std::size_t i = 0; i < weight_.tiles.size(); ++i) {
      const TensorView values = weight_.lender->acquire(index(i));
      run(output_product({take_columns(i), values, sum, i == 0 ? bias : TensorView{}, i > 0}),
          products_, stream_);
      weight_.lender->release(index(i));
    }
    if (space_.sum.empty()) return;
    stream_.launch([sum, output = output_] { ops::convert(sum, output); });
  }

  void backward_weight() const {
    for (std::size_t i = weight_.tiles.size(); i-- > 0;) {
      const GradientTarget target = weight_.lender->gradients(index(i));
      run(weight_product({take_columns(i), output_, target}), products_, stream_);
      weight_.lender->reduce(index(i));
    }
  }

  /// The input is the gradient to write, the output the one to read.
  void backward_input() const {
    for (std::size_t i = weight_.tiles.size(); i-- > 0;) {
      const TensorView gradient = space_.of(weight_.tiles[i]);
      const TensorView values = weight_.lender->acquire(index(i));
      run(input_product({output_, values, gradient}), products_, stream_);
      weight_.lender->release(index(i));
      ops::copy_rows(gradient, columns_of(i), stream_);
    }
  }

 private:
  [[nodiscard]] LinearSizes sizes() const {
    return {input_.shape()[0], input_.shape()[1], output_.shape()[1],
            static_cast<std::int64_t>(weight_.tiles.size())};
  }
  [[nodiscard]] std::size_t index(std::size_t tile) const { return weight_.first_tile + tile; }
  [[nodiscard]] TensorView columns_of(std::size_t tile) const {
    return ops::columns(input_, weight_.tiles[tile].first_row, weight_.tiles[tile].rows);
  }
  [[nodiscard]] TensorView take_columns(std::size_t tile) const {
    const TensorView columns = space_.of(weight_.tiles[tile]);
    ops::copy_rows(columns_of(tile), columns, stream_);
    return columns;
  }

  LinearWeight weight_;
  TensorView input_;
  TensorView output_;
  Arena arena_;
  TileSpace space_;
  Products products_;
  StreamView stream_;
};

}  // namespace

std::int64_t tile_rows(std::int64_t rows, std::int64_t splits) {
  return (rows + splits - 1) / splits;
}

Bytes tiled_workspace(const LinearSizes& sizes, DType dtype) {
  Arena arena;
  TileSpace(arena, sizes, dtype);
  Bytes products = 0;
  for (const ParameterTile& tile : split_rows(0, sizes.inputs, sizes.in_splits)) {
    products = std::max(
        products, products_workspace({sizes.rows, tile.rows, sizes.outputs}, dtype, DType::f32));
  }
  return arena.used() + products;
}

void tiled_forward(const LinearArgs& args, const Products& products, StreamView stream) {
  TiledCall(args.weight, args.input, args.output, products, stream).forward(args.bias);
}

void tiled_backward_weight(const LinearParameterGradients& args,
                           const Products& products,
                           StreamView stream) {
  TiledCall(args.weight, args.input, args.output_gradient, products, stream).backward_weight();
}

void tiled_backward_input(const LinearInputGradient& args,
                          const Products& products,
                          StreamView stream) {
  TiledCall(args.weight, args.input_gradient, args.output_gradient, products, stream)
      .backward_input();
}

}  // namespace dstrain::model
