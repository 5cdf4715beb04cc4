#include "runtime/model/linear.h"

#include <algorithm>

#include "runtime/model/linear_products.h"
#include "runtime/model/tiled_linear.h"
#include "runtime/ops/bias_gradient.h"

namespace dstrain::model {

LinearWeight weight_of(const UnitCall& call, const UnitSpec& spec, std::size_t parameter) {
  LinearWeight weight{.whole = call.parameters[parameter], .lender = call.tiles};
  const auto tiles = std::ranges::equal_range(spec.tiles, parameter, {}, &ParameterTile::parameter);
  weight.tiles = {tiles.begin(), tiles.end()};
  DSTRAIN_CHECK(weight.tiles.empty() || call.tiles != nullptr, "nobody lends the tiles of {}",
                spec.parameters[parameter].name);
  weight.first_tile = static_cast<std::size_t>(tiles.begin() - spec.tiles.begin());
  return weight;
}

std::vector<ParameterTile> split_rows(std::size_t parameter,
                                      std::int64_t rows,
                                      std::int64_t splits) {
  const std::int64_t most = tile_rows(rows, splits);
  std::vector<ParameterTile> tiles;
  for (std::int64_t row = 0; row < rows; row += most) {
    tiles.push_back({parameter, row, std::min(most, rows - row)});
  }
  return tiles;
}

Bytes linear_workspace(const LinearSizes& sizes, DType dtype) {
  if (sizes.in_splits > 1) return tiled_workspace(sizes, dtype);
  return products_workspace(sizes, dtype, dtype);
}

void linear_forward(const LinearArgs& args, const Products& products, StreamView stream) {
  if (!args.weight.tiles.empty()) return tiled_forward(args, products, stream);
  run(output_product({args.input, args.weight.whole, args.output, args.bias}), products, stream);
}

void linear_backward_parameters(const LinearParameterGradients& args,
                                const Products& products,
                                StreamView stream) {
  if (!args.weight.tiles.empty()) {
    tiled_backward_weight(args, products, stream);
  } else {
    run(weight_product({args.input, args.output_gradient, args.weight_gradient}), products, stream);
  }
  ops::bias_gradient({.output_gradient = args.output_gradient,
                      .gradient = args.bias_gradient.values,
                      .accumulate = args.bias_gradient.accumulate},
                     stream);
}

void linear_backward_input(const LinearInputGradient& args,
                           const Products& products,
                           StreamView stream) {
  if (!args.weight.tiles.empty()) return tiled_backward_input(args, products, stream);
  run(input_product({args.output_gradient, args.weight.whole, args.input_gradient}), products,
      stream);
}

}  // namespace dstrain::model
