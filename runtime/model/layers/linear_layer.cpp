#include "runtime/model/layers/linear_layer.h"

#include <algorithm>
#include <optional>

#include "runtime/ops/checks.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/copy_rows.h"
#include "runtime/ops/matmul_activation.h"
#include "runtime/ops/weight_gradient.h"
#include "runtime/tensor/arena.h"

namespace dstrain::model {
namespace {

using ops::as_matrix;
using ops::MatmulArgs;

/// The pieces of a weight in a call: its tiles, or the whole weight.
class Pieces {
 public:
  Pieces(const LayerCall& call, const ParameterRef& weight) : call_(call), weight_(weight) {
    constexpr auto parameter_of = &ParameterTile::parameter;
    const std::vector<ParameterTile>& all = call.spec.tiles;
    const auto first = std::ranges::lower_bound(all, weight.index, {}, parameter_of);
    tiles_ = {first, std::ranges::upper_bound(all, weight.index, {}, parameter_of)};
    first_ = static_cast<std::size_t>(first - all.begin());
    DSTRAIN_CHECK(!tiled() || call.unit.tiles != nullptr, "nobody lends the tiles of {}",
                  call.spec.parameters[weight.index].name);
  }
  [[nodiscard]] bool tiled() const { return !tiles_.empty(); }
  [[nodiscard]] std::size_t count() const { return tiled() ? tiles_.size() : 1; }
  [[nodiscard]] const ParameterTile& tile(std::size_t piece) const { return tiles_[piece]; }
  [[nodiscard]] TensorView acquire(std::size_t piece) const {
    return tiled() ? call_.unit.tiles->acquire(first_ + piece) : call_.value(weight_);
  }
  void release(std::size_t piece) const {
    if (tiled()) call_.unit.tiles->release(first_ + piece);
  }
  [[nodiscard]] GradientTarget gradient(std::size_t piece) const {
    return tiled() ? call_.unit.tiles->gradients(first_ + piece) : call_.gradient(weight_);
  }
  void reduce(std::size_t piece) const {
    if (tiled()) call_.unit.tiles->reduce(first_ + piece);
  }

 private:
  const LayerCall& call_;
  const ParameterRef& weight_;
  std::span<const ParameterTile> tiles_;
  std::size_t first_ = 0;
};

/// The sizes of a call: R rows, and a weight (rows, columns). The features of one side of the layer
/// belong to the weight's rows, those of the other to its columns.
struct CallSizes {
  std::int64_t rows;
  std::int64_t weight_rows;
  std::int64_t weight_columns;
  WeightLayout layout;
};

/// The parts of the workspace of a layer in tiles.
struct TileSpace {
  TileSpace(Arena& arena, const CallSizes& largest, DType dtype)
      : room(arena.take({largest.rows, largest.weight_rows}, dtype)) {
    if (dtype != DType::f32 || largest.layout == WeightLayout::outputs_first) {
      sum = arena.take({largest.rows, largest.weight_columns});
    }
  }
  TensorView room;   ///< data that belongs to the rows of a tile, dense
  TensorView sum{};  ///< f32 (R, columns): sum over tiles; empty: added in place
};

/// One call of a layer, over the pieces of its weight.
class LinearCall {
 public:
  LinearCall(const LayerCall& call, const LinearLayer::Parameters& parameters, WeightLayout layout)
      : call_(call),
        parameters_(parameters),
        outputs_first_(layout == WeightLayout::outputs_first),
        pieces_(call, parameters.weight),
        workspace_(call.workspace) {
    if (!tiled()) return;
    const std::size_t weight = call.position(parameters.weight);
    Arena arena(workspace_);
    space_.emplace(arena,
                   CallSizes{ops::rows_of(call.inputs[0]), pieces_.tile(0).rows,
                             call.spec.parameters[weight].shape[1], layout},
                   call.inputs[0].dtype());
    workspace_ = arena.rest();
  }

  [[nodiscard]] bool tiled() const { return pieces_.tiled(); }

  /// Computes output = input W [transposed] + bias.
  void forward() const {
    const TensorView output = as_matrix(call_.output);
    for (std::size_t i = 0; i < pieces_.count(); ++i) {
      run(i, output_product(i), output, outputs_first_);
    }
    if (!outputs_first_) finish_sum(output);
  }

  void backward() const {
    for (std::size_t i = pieces_.count(); i-- > 0;) {
      weight_gradient(i);
      input_gradient(i);
      pieces_.reduce(i);
    }
    if (outputs_first_) finish_sum(backward_sides().to);
  }
  void backward_input() const {
    for (std::size_t i = pieces_.count(); i-- > 0;) input_gradient(i);
    if (outputs_first_) finish_sum(backward_sides().to);
  }
  void backward_weight() const {
    for (std::size_t i = pieces_.count(); i-- > 0;) {
      weight_gradient(i);
      pieces_.reduce(i);
    }
  }

  // Arguments for one piece; for a whole weight, the first.
  [[nodiscard]] MatmulArgs output_product(std::size_t piece) const {
    const Sides sides{as_matrix(call_.inputs[0]), as_matrix(call_.output)};
    MatmulArgs product =
        outputs_first_ ? transposed_product(piece, sides) : plain_product(piece, sides);
    product.bias = bias_of(piece);
    product.accumulate = !outputs_first_ && piece > 0;
    return product;
  }
  [[nodiscard]] MatmulArgs input_product(std::size_t piece) const {
    const Sides sides = backward_sides();
    MatmulArgs product =
        outputs_first_ ? plain_product(piece, sides) : transposed_product(piece, sides);
    product.accumulate = outputs_first_ && piece + 1 < pieces_.count();
    return product;
  }

 private:
  struct Sides {
    TensorView from;
    TensorView to;
  };
  [[nodiscard]] Sides backward_sides() const {
    return {as_matrix(call_.output_gradient), as_matrix(call_.input_gradients[0].values)};
  }

  [[nodiscard]] TensorView room(std::size_t tile) const {
    return space_->room.part(0, {space_->room.shape()[0], pieces_.tile(tile).rows});
  }
  [[nodiscard]] TensorView strided(const TensorView& matrix, std::size_t tile) const {
    return matrix.columns(pieces_.tile(tile).first_row, pieces_.tile(tile).rows);
  }
  /// Returns the columns that belong to the rows of a piece of the weight, dense.
  [[nodiscard]] TensorView columns(const TensorView& matrix, std::size_t piece) const {
    if (!tiled()) return matrix;
    ops::copy_rows(strided(matrix, piece), room(piece), call_.stream);
    return room(piece);
  }
  /// Returns the tensor in which products of pieces are summed.
  [[nodiscard]] TensorView sum_of(const TensorView& to) const {
    return tiled() && !space_->sum.empty() ? space_->sum : to;
  }

  /// Computes to [+]= from W.
  [[nodiscard]] MatmulArgs plain_product(std::size_t piece, const Sides& sides) const {
    return {.a = columns(sides.from, piece),
            .b = pieces_.acquire(piece),
            .out = sum_of(sides.to),
            .workspace = workspace_};
  }
  /// Computes to = from W transposed, for the columns of a tile.
  [[nodiscard]] MatmulArgs transposed_product(std::size_t piece, const Sides& sides) const {
    return {.a = sides.from,
            .b = pieces_.acquire(piece),
            .out = tiled() ? room(piece) : sides.to,
            .b_transposed = true,
            .workspace = workspace_};
  }
  void run(std::size_t piece, const MatmulArgs& product, const TensorView& to, bool spreads) const {
    ops::matmul(product, call_.stream);
    pieces_.release(piece);
    if (spreads && tiled()) ops::copy_rows(room(piece), strided(to, piece), call_.stream);
  }
  void input_gradient(std::size_t piece) const {
    run(piece, input_product(piece), backward_sides().to, !outputs_first_);
  }
  void finish_sum(const TensorView& to) const {
    if (tiled() && !space_->sum.empty()) ops::convert(space_->sum, to, call_.stream);
  }

  /// Returns the bias for the sum that begins with the first piece, or for the columns of a piece.
  [[nodiscard]] TensorView bias_of(std::size_t piece) const {
    if (!parameters_.bias) return {};
    return part_of_bias(call_.value(*parameters_.bias), piece);
  }
  [[nodiscard]] TensorView part_of_bias(const TensorView& bias, std::size_t piece) const {
    if (!tiled() || bias.empty()) return bias;
    if (!outputs_first_) return piece == 0 ? bias : TensorView{};
    return bias.part(pieces_.tile(piece).first_row, {pieces_.tile(piece).rows});
  }

  void weight_gradient(std::size_t piece) const {
    const TensorView input = as_matrix(call_.inputs[0]);
    const TensorView output = as_matrix(call_.output_gradient);
    const GradientTarget target = pieces_.gradient(piece);
    const GradientTarget bias =
        parameters_.bias ? call_.gradient(*parameters_.bias) : GradientTarget{};
    const TensorView bias_values = part_of_bias(bias.values, piece);
    if (target.values.empty() && bias_values.empty()) return;
    ops::weight_gradient({.product = {.a = columns(outputs_first_ ? output : input, piece),
                                      .b = outputs_first_ ? input : output,
                                      .out = target.values,
                                      .a_transposed = true,
                                      .accumulate = target.accumulate,
                                      .workspace = workspace_},
                          .bias_gradient = bias_values,
                          .accumulate_bias = bias.accumulate,
                          .outputs_first = outputs_first_},
                         call_.stream);
  }

  const LayerCall& call_;
  const LinearLayer::Parameters& parameters_;
  bool outputs_first_;
  Pieces pieces_;
  TensorView workspace_;
  std::optional<TileSpace> space_{};
};

/// Returns the workspace for products with one piece of a weight; `sum`: the dtype of their sum.
Bytes products_workspace(const CallSizes& sizes, const UnitOptions& options, DType sum) {
  const auto need = [&options](const MatmulArgs& product) {
    return ops::matmul_workspace(product, options.device);
  };
  const auto view = [](DType type, Shape shape) {
    return TensorView(type, shape);
  };
  const DType dtype = options.dtype;
  const TensorView by_rows = view(dtype, {sizes.rows, sizes.weight_rows});
  const TensorView by_columns = view(dtype, {sizes.rows, sizes.weight_columns});
  const TensorView weight = view(dtype, {sizes.weight_rows, sizes.weight_columns});
  MatmulArgs plain{.a = by_rows, .b = weight, .out = view(sum, by_columns.shape())};
  MatmulArgs transposed{.a = by_columns, .b = weight, .out = by_rows, .b_transposed = true};
  const bool outputs_first = sizes.layout == WeightLayout::outputs_first;
  MatmulArgs& forward = outputs_first ? transposed : plain;
  forward.bias = view(dtype, {outputs_first ? sizes.weight_rows : sizes.weight_columns});
  const MatmulArgs gradient{.a = by_rows,
                            .b = by_columns,
                            .out = view(DType::f32, weight.shape()),
                            .a_transposed = true,
                            .accumulate = true};
  return std::max({need(plain), need(gradient), need(transposed)});
}

}  // namespace

Bytes LinearLayer::forward_workspace(BatchShape shape) const {
  const Shape weight = sizes_.weight();
  const CallSizes whole{shape.rows(), weight[0], weight[1], sizes_.layout};
  if (options_.in_splits == 1) return products_workspace(whole, options_, options_.dtype);
  const std::vector<ParameterTile> tiles = split_rows(0, weight[0], options_.in_splits);
  Arena arena;
  TileSpace(arena, {whole.rows, tiles.front().rows, weight[1], sizes_.layout}, options_.dtype);
  Bytes products = 0;
  for (const ParameterTile& tile : tiles) {
    const CallSizes piece{whole.rows, tile.rows, weight[1], sizes_.layout};
    products = std::max(products, products_workspace(piece, options_, DType::f32));
  }
  return arena.used() + products;
}

void LinearLayer::forward(const LayerCall& call) const {
  LinearCall(call, parameters_, sizes_.layout).forward();
}

void LinearLayer::forward(const LayerCall& call,
                          ops::Activation kind,
                          const TensorView& active) const {
  const LinearCall linear(call, parameters_, sizes_.layout);
  if (linear.tiled()) {
    linear.forward();
    ops::activation_forward({.kind = kind, .input = call.output, .output = active}, call.stream);
  } else {
    ops::matmul_activation_forward(
        {.product = linear.output_product(0), .kind = kind, .active = as_matrix(active)},
        call.stream);
  }
}

void LinearLayer::backward(const LayerCall& call) const {
  LinearCall(call, parameters_, sizes_.layout).backward();
}

void LinearLayer::backward_input(const LayerCall& call) const {
  LinearCall(call, parameters_, sizes_.layout).backward_input();
}

void LinearLayer::backward_input(const LayerCall& call,
                                 ops::Activation kind,
                                 const TensorView& inner) const {
  const LinearCall linear(call, parameters_, sizes_.layout);
  const TensorView& gradient = call.input_gradients[0].values;
  if (linear.tiled()) {
    linear.backward_input();
    ops::activation_backward({.kind = kind,
                              .input = inner,
                              .output_gradient = gradient,
                              .input_gradient = gradient,
                              .output = call.inputs[0]},
                             call.stream);
  } else {
    ops::matmul_activation_backward({.product = linear.input_product(0),
                                     .kind = kind,
                                     .input = as_matrix(inner),
                                     .active = as_matrix(call.inputs[0])},
                                    call.stream);
  }
}

void LinearLayer::backward_weight(const LayerCall& call) const {
  LinearCall(call, parameters_, sizes_.layout).backward_weight();
}

std::vector<ParameterTile> split_rows(std::size_t parameter,
                                      std::int64_t rows,
                                      std::int64_t splits) {
  const std::int64_t most = (rows + splits - 1) / splits;
  std::vector<ParameterTile> tiles;
  for (std::int64_t row = 0; row < rows; row += most) {
    tiles.push_back({parameter, row, std::min(most, rows - row)});
  }
  return tiles;
}

}  // namespace dstrain::model
