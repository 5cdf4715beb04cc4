#include "runtime/ops/activation_functions.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/elementwise.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {
namespace {

template <class Function, class T>
struct Forward {
  const T* input;
  const T* factor;  ///< or null
  T* output;
  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    const float value = Function::value(to_float(input[i]));
    output[i] = from_float<T>(factor == nullptr ? value : value * to_float(factor[i]));
  }
};

template <class Function, class T>
struct Backward {
  const T* input;
  const T* factor;  ///< or null, as the next two
  const T* output_gradient;
  T* input_gradient;
  T* factor_gradient;
  T* output;
  DSTRAIN_DEVICE void operator()(std::int64_t i) const {
    const Point at = Function::point(to_float(input[i]));
    const float gradient = to_float(output_gradient[i]);
    if (factor == nullptr) {
      input_gradient[i] = from_float<T>(gradient * at.slope);
      if (output != nullptr) output[i] = from_float<T>(at.value);
      return;
    }
    const float other = to_float(factor[i]);
    factor_gradient[i] = from_float<T>(gradient * at.value);
    input_gradient[i] = from_float<T>(gradient * other * at.slope);
    if (output != nullptr) output[i] = from_float<T>(at.value * other);
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
    for_elements("activation_forward", args.input.numel(),
                 Forward<decltype(function), T>{elements<T>(args.input), elements<T>(args.factor),
                                                elements<T>(args.output)},
                 stream);
  });
}

void activation_backward(const ActivationBackwardArgs& args, StreamView stream) {
  dispatch(args, [&](auto function, auto element) {
    using T = decltype(element);
    for_elements("activation_backward", args.input.numel(),
                 Backward<decltype(function), T>{
                     elements<T>(args.input), elements<T>(args.factor),
                     elements<T>(args.output_gradient), elements<T>(args.input_gradient),
                     elements<T>(args.factor_gradient), elements<T>(args.output)},
                 stream);
  });
}

}  // namespace dstrain::ops::gpu
