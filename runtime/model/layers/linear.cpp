#include "runtime/model/layers/linear.h"

#include <algorithm>
#include <optional>

#include "runtime/ops/checks.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/copy_rows.h"
#include "runtime/ops/gelu.h"
#include "runtime/ops/matmul_gelu.h"
#include "runtime/ops/weight_gradient.h"
#include "runtime/tensor/arena.h"

namespace dstrain::model {
namespace {

TensorView as_matrix(const TensorView& view) {
  return view.reshaped({ops::rows_of(view), ops::columns_of(view)});
}

/// How the workspace of a layer in tiles is cut; `largest`: the sizes of the largest, the first.
struct TileSpace {
  TileSpace(Arena& arena, const LinearSizes& largest, DType dtype)
      : columns(arena.take({largest.rows, largest.inputs}, dtype)) {
    if (dtype != DType::f32) sum = arena.take({largest.rows, largest.outputs});
  }
  TensorView columns;  ///< of an input or its gradient that belong to a tile, dense
  TensorView sum{};    ///< (rows, N); empty when outputs are f32
};

/// One call over the pieces of a weight: its tiles, or all of it. `input` and `output` are values
/// in forward; in backward `output` is a gradient.
class Call {
 public:
  Call(const LinearWeight& weight,
       TensorView input,
       TensorView output,
       const TensorView& workspace,
       StreamView stream)
      : weight_(weight),
        input_(as_matrix(input)),
        output_(as_matrix(output)),
        workspace_(workspace),
        stream_(stream) {
    if (!tiled()) return;
    Arena arena(workspace);
    space_.emplace(arena,
                   LinearSizes{input_.shape()[0], weight.tiles.front().rows, output_.shape()[1]},
                   output.dtype());
    workspace_ = arena.rest();
  }

  /// With `active` also gelu(output); in tiles by itself, of the whole sum.
  void forward(TensorView bias, TensorView active) const {
    if (!tiled() && !active.empty()) {
      ops::matmul_gelu_forward({output_product(0, bias), as_matrix(active)}, stream_);
      return;
    }
    for (std::size_t i = 0; i < pieces(); ++i) {
      ops::matmul(output_product(i, bias), stream_);
      release(i);
    }
    if (rounds()) ops::convert(space_->sum, output_, stream_);
    if (!active.empty()) ops::gelu_forward(output_, active, stream_);
  }

  /// The gradients of weight and bias and, with `over_input`, of the input, in its place. A tile is
  /// not used any more when that of its weight is handed over.
  void backward(const GradientTarget& bias, bool over_input) const {
    for (std::size_t i = pieces(); i-- > 0;) {
      weight_gradient(i, bias);
      if (over_input) input_gradient(i);
      if (tiled()) weight_.lender->reduce(lent(i));
    }
  }
  /// That of the input; with `inner`, of which the input is the GELU, that of `inner`.
  void backward_input(TensorView inner, TensorView active) const {
    if (!tiled() && !inner.empty()) {
      ops::matmul_gelu_backward({input_product(0), as_matrix(inner), as_matrix(active)}, stream_);
      return;
    }
    for (std::size_t i = pieces(); i-- > 0;) input_gradient(i);
    if (!inner.empty()) ops::gelu_backward(inner, input_, active, stream_);
  }

 private:
  [[nodiscard]] bool tiled() const { return !weight_.tiles.empty(); }
  /// Whether the products of tiles add up in f32 what is rounded at last.
  [[nodiscard]] bool rounds() const { return tiled() && !space_->sum.empty(); }
  [[nodiscard]] std::size_t pieces() const { return tiled() ? weight_.tiles.size() : 1; }
  [[nodiscard]] std::size_t lent(std::size_t tile) const { return weight_.first_tile + tile; }
  [[nodiscard]] TensorView acquire(std::size_t piece) const {
    return tiled() ? weight_.lender->acquire(lent(piece)) : weight_.whole;
  }
  void release(std::size_t piece) const {
    if (tiled()) weight_.lender->release(lent(piece));
  }

  [[nodiscard]] TensorView columns_of_input(std::size_t tile) const {
    return input_.columns(weight_.tiles[tile].first_row, weight_.tiles[tile].rows);
  }
  /// Dense, (rows, rows of the tile).
  [[nodiscard]] TensorView room(std::size_t tile) const {
    return space_->columns.part(0, {input_.shape()[0], weight_.tiles[tile].rows});
  }
  /// Of the input, dense: what a piece of the weight multiplies.
  [[nodiscard]] TensorView columns(std::size_t piece) const {
    if (!tiled()) return input_;
    ops::copy_rows(columns_of_input(piece), room(piece), stream_);
    return room(piece);
  }

  [[nodiscard]] ops::MatmulArgs output_product(std::size_t piece, TensorView bias) const {
    return {.a = columns(piece),
            .b = acquire(piece),
            .out = rounds() ? space_->sum : output_,
            .bias = piece == 0 ? bias : TensorView{},
            .accumulate = piece > 0,
            .workspace = workspace_};
  }

  /// With that of the first piece, which comes last, that of the bias.
  void weight_gradient(std::size_t piece, const GradientTarget& bias) const {
    const GradientTarget target =
        tiled() ? weight_.lender->gradients(lent(piece)) : weight_.gradient;
    const GradientTarget with = piece == 0 ? bias : GradientTarget{};
    if (target.values.empty() && with.values.empty()) return;
    ops::weight_gradient({.product = {.a = columns(piece),
                                      .b = output_,
                                      .out = target.values,
                                      .a_transposed = true,
                                      .accumulate = target.accumulate,
                                      .workspace = workspace_},
                          .bias_gradient = with.values,
                          .accumulate_bias = with.accumulate},
                         stream_);
  }

  [[nodiscard]] ops::MatmulArgs input_product(std::size_t piece) const {
    return {.a = output_,
            .b = acquire(piece),
            .out = tiled() ? room(piece) : input_,
            .b_transposed = true,
            .workspace = workspace_};
  }

  void input_gradient(std::size_t piece) const {
    ops::matmul(input_product(piece), stream_);
    release(piece);
    if (tiled()) ops::copy_rows(room(piece), columns_of_input(piece), stream_);
  }

  LinearWeight weight_;
  TensorView input_;
  TensorView output_;
  TensorView workspace_;
  StreamView stream_;
  std::optional<TileSpace> space_;
};

/// What the products of one piece of a weight need; `sum`: where forward writes.
Bytes products_workspace(const LinearSizes& sizes, const UnitOptions& options, DType sum) {
  const DType dtype = options.dtype;
  const auto need = [&options](const ops::MatmulArgs& product) {
    return ops::matmul_workspace(product, options.device);
  };
  const auto view = [](DType type, Shape shape) {
    return TensorView(type, shape);
  };
  const TensorView input = view(dtype, {sizes.rows, sizes.inputs});
  const TensorView output = view(dtype, {sizes.rows, sizes.outputs});
  const TensorView weight = view(dtype, {sizes.inputs, sizes.outputs});
  return std::max({need({.a = input,
                         .b = weight,
                         .out = view(sum, output.shape()),
                         .bias = view(dtype, {sizes.outputs})}),
                   need({.a = input,
                         .b = output,
                         .out = view(DType::f32, weight.shape()),
                         .a_transposed = true,
                         .accumulate = true}),
                   need({.a = output, .b = weight, .out = input, .b_transposed = true})});
}

}  // namespace

LinearWeight weight_of(const UnitCall& call, const UnitSpec& spec, std::size_t parameter) {
  constexpr auto parameter_of = &ParameterTile::parameter;
  const auto first = std::ranges::lower_bound(spec.tiles, parameter, {}, parameter_of);
  const auto last = std::ranges::upper_bound(spec.tiles, parameter, {}, parameter_of);
  DSTRAIN_CHECK(first == last || call.tiles != nullptr, "nobody lends the tiles of {}",
                spec.parameters[parameter].name);
  LinearWeight weight{.whole = call.parameters[parameter],
                      .tiles = {first, last},
                      .first_tile = static_cast<std::size_t>(first - spec.tiles.begin()),
                      .lender = call.tiles};
  if (!call.parameter_gradients.empty()) weight.gradient = call.parameter_gradients[parameter];
  return weight;
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

Bytes linear_workspace(const LinearSizes& sizes, const UnitOptions& options) {
  if (options.in_splits == 1) return products_workspace(sizes, options, options.dtype);
  const std::vector<ParameterTile> tiles = split_rows(0, sizes.inputs, options.in_splits);
  Arena arena;
  TileSpace(arena, {sizes.rows, tiles.front().rows, sizes.outputs}, options.dtype);
  Bytes products = 0;
  for (const ParameterTile& tile : tiles) {
    const LinearSizes piece{sizes.rows, tile.rows, sizes.outputs};
    products = std::max(products, products_workspace(piece, options, DType::f32));
  }
  return arena.used() + products;
}

void linear_forward(const LinearArgs& args, const TensorView& workspace, StreamView stream) {
  Call(args.weight, args.input, args.output, workspace, stream).forward(args.bias, args.active);
}

void linear_backward(const LinearBackwardArgs& args,
                     const TensorView& workspace,
                     StreamView stream) {
  Call(args.weight, args.input, args.output_gradient, workspace, stream)
      .backward(args.bias, args.over_input);
}

void linear_backward_input(const LinearInputGradient& args,
                           const TensorView& workspace,
                           StreamView stream) {
  Call(args.weight, args.input_gradient, args.output_gradient, workspace, stream)
      .backward_input(args.inner, args.active);
}

}  // namespace dstrain::model
