#include "cmd/bench/gemm_shapes.h"

#include <algorithm>
#include <string_view>

#include "runtime/model/loss_unit.h"
#include "runtime/ops/classifier_plan.h"

namespace dstrain::bench {
namespace {

struct Linear {
  std::string name;  ///< without the unit's
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool outputs_first = false;  ///< of the weight
  bool bias = false;
  int times = 0;
  /// Alike in all but `times`.
  [[nodiscard]] bool is_like(const Linear& other) const {
    return name == other.name && inputs == other.inputs && outputs == other.outputs;
  }
};

/// y = x W + b with W (inputs, outputs): y, then dx = dy W^T, then dW += x^T dy. With outputs
/// first, W and dW are the transposes.
void add_linear(std::vector<GemmShape>& shapes, const Linear& linear, std::int64_t rows) {
  const auto times = static_cast<double>(linear.times);
  shapes.push_back({.name = linear.name + " forward",
                    .m = rows,
                    .n = linear.outputs,
                    .k = linear.inputs,
                    .times = times,
                    .b_transposed = linear.outputs_first,
                    .bias = linear.bias});
  shapes.push_back({.name = linear.name + " dX",
                    .m = rows,
                    .n = linear.inputs,
                    .k = linear.outputs,
                    .times = times,
                    .b_transposed = !linear.outputs_first});
  shapes.push_back({.name = linear.name + " dW",
                    .m = linear.outputs_first ? linear.outputs : linear.inputs,
                    .n = linear.outputs_first ? linear.inputs : linear.outputs,
                    .k = rows,
                    .times = times,
                    .a_transposed = true,
                    .f32_out = true,
                    .accumulate = true});
}

/// The matrices of a unit that reads activations, but not the classifier's.
void collect_linears(std::vector<Linear>& linears,
                     const model::Model& model,
                     const model::UnitSpec& unit) {
  constexpr std::string_view ending = ".weight";
  for (const model::ParameterSpec& weight : unit.parameters) {
    const bool classifies = unit.loss && weight.shape[0] == model.vocabulary;
    if (weight.shape.rank() != 2 || classifies || !weight.name.ends_with(ending)) continue;
    const std::string stem = weight.name.substr(0, weight.name.size() - ending.size());
    const bool prefixed = stem.starts_with(unit.name + ".");
    const std::int64_t first = weight.shape[0];
    const std::int64_t second = weight.shape[1];
    const Linear found{
        .name = prefixed ? stem.substr(unit.name.size() + 1) : stem,
        .inputs = model.outputs_first ? second : first,
        .outputs = model.outputs_first ? first : second,
        .outputs_first = model.outputs_first,
        .bias = std::ranges::find(unit.parameters, stem + ".bias", &model::ParameterSpec::name) !=
                unit.parameters.end()};
    auto known =
        std::ranges::find_if(linears, [&](const Linear& linear) { return linear.is_like(found); });
    if (known == linears.end()) known = linears.insert(known, found);
    ++known->times;
  }
}

/// A chunk of rows and a piece of the vocabulary, as the head takes them at a time.
struct HeadPiece {
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t columns;
  double times;
};

HeadPiece head_piece(const model::Model& model, std::int64_t rows) {
  Arena nothing;  // only sizes are asked for
  const std::int64_t chunk = model::loss_chunk_rows(rows);
  const ops::ClassifierPlan plan(nothing, {chunk, model.hidden, model.vocabulary, DType::f32});
  const std::int64_t columns = plan.logits().width(0);
  return {chunk, model.hidden, columns,
          static_cast<double>(rows) / static_cast<double>(chunk) *
              static_cast<double>(model.vocabulary) / static_cast<double>(columns)};
}

/// logits = x E^T with E (columns, channels), then dx += dlogits E, then dE += dlogits^T x.
void add_head(std::vector<GemmShape>& shapes, const HeadPiece& piece) {
  const auto& [rows, channels, columns, times] = piece;
  shapes.push_back({.name = "head forward",
                    .m = rows,
                    .n = columns,
                    .k = channels,
                    .times = times,
                    .b_transposed = true,
                    .f32_out = true});
  shapes.push_back({.name = "head dX",
                    .m = rows,
                    .n = channels,
                    .k = columns,
                    .times = times,
                    .f32_out = true,
                    .accumulate = true});
  shapes.push_back({.name = "head dW",
                    .m = columns,
                    .n = channels,
                    .k = rows,
                    .times = times,
                    .a_transposed = true,
                    .f32_out = true,
                    .accumulate = true});
}

}  // namespace

std::vector<GemmShape> gemm_shapes(const model::Model& model, std::int64_t rows) {
  std::vector<Linear> linears;
  for (const auto& unit : model.units) {
    if (!unit->spec().reads.empty()) collect_linears(linears, model, unit->spec());
  }
  std::vector<GemmShape> shapes;
  for (const Linear& linear : linears) add_linear(shapes, linear, rows);
  add_head(shapes, head_piece(model, rows));
  return shapes;
}

ops::MatmulArgs product_of(const GemmShape& shape, DType dtype) {
  const auto view = [](DType type, Shape sizes) {
    return TensorView(type, sizes);
  };
  const auto matrix = [&](DType type, std::int64_t rows, std::int64_t columns, bool transposed) {
    return view(type, transposed ? Shape{columns, rows} : Shape{rows, columns});
  };
  return {.a = matrix(dtype, shape.m, shape.k, shape.a_transposed),
          .b = matrix(dtype, shape.k, shape.n, shape.b_transposed),
          .out = matrix(shape.f32_out ? DType::f32 : dtype, shape.m, shape.n, false),
          .bias = shape.bias ? view(dtype, {shape.n}) : TensorView(),
          .a_transposed = shape.a_transposed,
          .b_transposed = shape.b_transposed,
          .accumulate = shape.accumulate,
          .workspace = {}};
}

}  // namespace dstrain::bench
