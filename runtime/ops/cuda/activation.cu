#include "runtime/ops/activation_functions.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {
namespace {

/// Rows of one length that lie `stride` apart.
template <class T>
struct Rows {
  T* first;  ///< null: there are none
  std::int64_t stride;
  DSTRAIN_DEVICE explicit operator bool() const { return first != nullptr; }
};

template <class T>
Rows<T> rows_in(const TensorView& view) {
  return {elements<T>(view), view.row_stride()};
}

/// An element of tensors of one size, however far apart their rows lie.
struct Place {
  std::int64_t row;
  std::int64_t column;
  template <class T>
  DSTRAIN_DEVICE T& in(const Rows<T>& rows) const {
    return rows.first[row * rows.stride + column];
  }
};

template <class Function, class T>
struct Forward {
  std::int64_t columns;
  Rows<const T> input;
  Rows<const T> factor;  ///< or none
  Rows<T> output;
  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    const Place at{i / columns, i % columns};
    const float value = Function::value(to_float(at.in(input)));
    at.in(output) = from_float<T>(factor ? value * to_float(at.in(factor)) : value);
  }
};

template <class Function, class T>
struct Backward {
  std::int64_t columns;
  Rows<const T> input;
  Rows<const T> factor;  ///< or none, as the last two
  Rows<const T> output_gradient;
  Rows<T> input_gradient;
  Rows<T> factor_gradient;
  Rows<T> output;
  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    const Place place{i / columns, i % columns};
    const Point at = Function::point(to_float(place.in(input)));
    const float gradient = to_float(place.in(output_gradient));
    if (!factor) {
      place.in(input_gradient) = from_float<T>(gradient * at.slope);
      if (output) place.in(output) = from_float<T>(at.value);
      return;
    }
    const float other = to_float(place.in(factor));
    place.in(factor_gradient) = from_float<T>(gradient * at.value);
    place.in(input_gradient) = from_float<T>(gradient * other * at.slope);
    if (output) place.in(output) = from_float<T>(at.value * other);
  }
};

/// Calls `body(function, element)` for the kind and the dtype of `args`.
template <class Args, class Body>
void dispatch(const Args& args, const Body& body) {
  with_element_type(args.input.dtype(), [&](auto element) {
    with_function(args.kind, [&](auto function) { body(function, element); });
  });
}

}  // namespace

void activation_forward(const ActivationArgs& args, StreamView stream) {
  dispatch(args, [&](auto function, auto element) {
    using T = decltype(element);
    for_elements(
        "activation_forward", args.input.numel(),
        Forward<decltype(function), T>{columns_of(args.input), rows_in<const T>(args.input),
                                       rows_in<const T>(args.factor), rows_in<T>(args.output)},
        stream);
  });
}

void activation_backward(const ActivationBackwardArgs& args, StreamView stream) {
  dispatch(args, [&](auto function, auto element) {
    using T = decltype(element);
    for_elements(
        "activation_backward", args.input.numel(),
        Backward<decltype(function), T>{
            columns_of(args.input), rows_in<const T>(args.input), rows_in<const T>(args.factor),
            rows_in<const T>(args.output_gradient), rows_in<T>(args.input_gradient),
            rows_in<T>(args.factor_gradient), rows_in<T>(args.output)},
        stream);
  });
}

}  // namespace dstrain::ops::gpu
