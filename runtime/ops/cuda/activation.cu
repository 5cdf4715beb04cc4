#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "runtime/ops/activation_functions.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/cuda/warp_instructions.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {
namespace {

struct GpuArithmetic {
  static constexpr float exp2(float x) { return approximate_exp2(x); }
  static constexpr float reciprocal(float x) { return approximate_reciprocal(x); }
};

/// Rows of one length that lie `stride` apart.
template <class T>
struct Rows {
  T* first;  ///< null if the tensor is absent
  std::int64_t stride;
  DSTRAIN_DEVICE explicit operator bool() const { return first != nullptr; }
};

template <class T>
Rows<T> rows_in(const TensorView& view) {
  return {elements<T>(view), view.row_stride()};
}

/// The position of an element in tensors of the same shape; strides may differ.
struct Place {
  std::int64_t row;
  std::int64_t column;
  /// Returns element i of rows of `columns` columns.
  DSTRAIN_DEVICE static Place of(std::int64_t i, std::int64_t columns) {
    if (i < columns) return {0, i};  // dense tensors are one row: no division
    return {i / columns, i % columns};
  }
  template <int n, class T>
  DSTRAIN_DEVICE Pack<std::remove_const_t<T>, n> load(const Rows<T>& rows) const {
    return gpu::load<n>(rows.first + row * rows.stride, column);
  }
  template <int n, class T>
  DSTRAIN_DEVICE void store(const Pack<T, n>& pack, const Rows<T>& rows) const {
    gpu::store(pack, rows.first + row * rows.stride, column);
  }
};

/// Whether rows divide into aligned packs.
template <class... Types>
bool hold_packs(std::int64_t columns, const Rows<Types>&... rows) {
  const auto holds = [columns]<class T>(const Rows<T>& all) {
    constexpr int n = pack_numel<T>;
    return all.first == nullptr ||
           (are_aligned(all.first) && all.stride % n == 0 && columns % n == 0);
  };
  return (holds(rows) && ...);
}

template <class Function, class T>
struct Forward {
  static constexpr int numel = pack_numel<T>;
  std::int64_t columns;
  Rows<const T> input;
  Rows<const T> factor;  ///< optional
  Rows<T> output;
  [[nodiscard]] bool aligned() const { return hold_packs(columns, input, factor, output); }

  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    const Place at = Place::of(i, columns);
    const auto x = at.load<n>(input);
    const auto other = factor ? at.load<n>(factor) : Pack<T, n>{};
    Pack<float, n> out;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const float value = Function::value(to_float(x.at[j]));
      out.at[j] = factor ? value * to_float(other.at[j]) : value;
    }
    at.store(rounded<T>(out), output);
  }
};

template <class Function, class T>
struct Backward {
  static constexpr int numel = pack_numel<T>;
  std::int64_t columns;
  Rows<const T> input;
  Rows<const T> factor;  ///< optional, like the last two
  Rows<const T> output_gradient;
  Rows<T> input_gradient;
  Rows<T> factor_gradient;
  Rows<T> output;
  [[nodiscard]] bool aligned() const {
    return hold_packs(columns, input, factor, output_gradient, input_gradient, factor_gradient,
                      output);
  }

  template <int n>
  DSTRAIN_DEVICE void apply(std::int64_t i) const {
    const Place place = Place::of(i, columns);
    const auto x = place.load<n>(input);
    const auto gradient = place.load<n>(output_gradient);
    const auto other = factor ? place.load<n>(factor) : Pack<T, n>{};
    Pack<float, n> of_input;
    Pack<float, n> of_factor;
    Pack<float, n> out;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const Point at = Function::point(to_float(x.at[j]));
      const float of_output = to_float(gradient.at[j]);
      const float by = factor ? to_float(other.at[j]) : 1.0F;
      of_factor.at[j] = of_output * at.value;
      of_input.at[j] = of_output * by * at.slope;
      out.at[j] = at.value * by;
    }
    if (factor) place.store(rounded<T>(of_factor), factor_gradient);
    place.store(rounded<T>(of_input), input_gradient);
    if (output) place.store(rounded<T>(out), output);
  }
};

/// Returns the total number of elements if all tensors are dense, which makes them one row;
/// otherwise their number of columns. Empty views count as dense.
std::int64_t longest_row(std::initializer_list<const TensorView*> views) {
  const bool dense =
      std::ranges::all_of(views, [](const TensorView* view) { return view->dense(); });
  const TensorView& any = **views.begin();
  return dense ? any.numel() : columns_of(any);
}

/// Calls `body(function, element)` for the kind and the dtype of `args`.
template <class Args, class Body>
void dispatch(const Args& args, const Body& body) {
  with_element_type(args.input.dtype(), [&](auto element) {
    with_function<GpuArithmetic>(args.kind, [&](auto function) { body(function, element); });
  });
}

}  // namespace

void activation_forward(const ActivationArgs& args, StreamView stream) {
  dispatch(args, [&](auto function, auto element) {
    using T = decltype(element);
    const Forward<decltype(function), T> forward{
        longest_row({&args.input, &args.factor, &args.output}), rows_in<const T>(args.input),
        rows_in<const T>(args.factor), rows_in<T>(args.output)};
    for_packs("activation_forward", args.input.numel(), forward.aligned(), forward, stream);
  });
}

void activation_backward(const ActivationBackwardArgs& args, StreamView stream) {
  dispatch(args, [&](auto function, auto element) {
    using T = decltype(element);
    const Backward<decltype(function), T> backward{
        longest_row({&args.input, &args.factor, &args.output_gradient, &args.input_gradient,
                     &args.factor_gradient, &args.output}),
        rows_in<const T>(args.input),
        rows_in<const T>(args.factor),
        rows_in<const T>(args.output_gradient),
        rows_in<T>(args.input_gradient),
        rows_in<T>(args.factor_gradient),
        rows_in<T>(args.output)};
    for_packs("activation_backward", args.input.numel(), backward.aligned(), backward, stream);
  });
}

}  // namespace dstrain::ops::gpu
