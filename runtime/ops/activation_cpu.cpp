#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/activation.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/fast_exp.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

/// 1 / (1 + 2^power).
inline float logistic(float power) {
  return 1.0F / (1.0F + fast_exp2(power < 126.0F ? power : 126.0F));
}

/// A function and its derivative at one place.
struct Point {
  float value;
  float slope;
};

struct GeluTanh {
  static constexpr float cubic = 0.044715F;
  static constexpr float twice_root = 1.59576912F;  // 2 sqrt(2 / pi)
  /// (1 + tanh(u)) / 2 = 1 / (1 + e^-2u), without the cancellation that tanh has near -1.
  static float gate(float x) {
    constexpr float linear_term = -twice_root * log2_e;
    constexpr float cubic_term = linear_term * cubic;
    return logistic(x * (linear_term + cubic_term * (x * x)));
  }
  static float value(float x) { return x * gate(x); }
  static Point point(float x) {
    const float s = gate(x);
    const float slope = twice_root + 3.0F * twice_root * cubic * (x * x);
    return {x * s, s + x * s * (1.0F - s) * slope};
  }
};

struct Gelu {
  static constexpr float root_half = 0.707106781F;
  static constexpr float density = 0.398942280F;  // 1 / sqrt(2 pi)
  /// e^(-x^2 / 2).
  static float bell(float x) {
    const float power = -0.5F * log2_e * (x * x);
    return fast_exp2(power < -126.5F ? -126.5F : power);
  }
  /// Phi(x): Abramowitz & Stegun 1964, 7.1.26, to 1.5e-7 / 2.
  static float distribution(float x, float bell_of_x) {
    const float t = 1.0F / (1.0F + 0.3275911F * root_half * std::fabs(x));
    float p = t * 1.061405429F - 1.453152027F;
    p = p * t + 1.421413741F;
    p = p * t - 0.284496736F;
    p = p * t + 0.254829592F;
    const float tail = 0.5F * p * t * bell_of_x;
    return x < 0 ? tail : 1.0F - tail;
  }
  static float value(float x) { return x * distribution(x, bell(x)); }
  static Point point(float x) {
    const float b = bell(x);
    const float phi = distribution(x, b);
    return {x * phi, phi + x * (density * b)};
  }
};

/// x s(factor x).
template <int thousandths>
struct Sigmoid {
  static constexpr float factor = static_cast<float>(thousandths) / 1000.0F;
  static float gate(float x) { return logistic(x * (-factor * log2_e)); }
  static float value(float x) { return x * gate(x); }
  static Point point(float x) {
    const float s = gate(x);
    return {x * s, s + factor * (x * s * (1.0F - s))};
  }
};

struct Relu {
  static float value(float x) { return x > 0 ? x : 0.0F; }
  static Point point(float x) { return {value(x), x > 0 ? 1.0F : 0.0F}; }
};

/// Calls `body` with a value of the type of a kind.
template <class Body>
void with_function(Activation kind, const Body& body) {
  switch (kind) {
    case Activation::gelu_tanh:
      return body(GeluTanh{});
    case Activation::gelu:
      return body(Gelu{});
    case Activation::quick_gelu:
      return body(Sigmoid<1702>{});
    case Activation::silu:
      return body(Sigmoid<1000>{});
    case Activation::relu:
      return body(Relu{});
  }
}

// ivdep: two tensors are the same memory or disjoint, so no iteration sees another's.

/// What a task works on, from its first element on.
template <class T>
struct Forward {
  const T* input;
  const T* factor = nullptr;
  T* output;
  std::int64_t count;
};

template <class Function, class T>
DSTRAIN_SIMD_CLONES void forward_kernel(Forward<T> f) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < f.count; ++i) {
    f.output[i] = from_float<T>(Function::value(to_float(f.input[i])));
  }
}

template <class Function, class T>
DSTRAIN_SIMD_CLONES void gated_forward_kernel(Forward<T> f) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < f.count; ++i) {
    f.output[i] = from_float<T>(Function::value(to_float(f.input[i])) * to_float(f.factor[i]));
  }
}

template <class T>
struct Backward {
  const T* input;
  const T* factor = nullptr;
  const T* output_gradient;
  T* input_gradient;
  T* factor_gradient = nullptr;
  T* output = nullptr;
  std::int64_t count;
};

template <class Function, class T>
DSTRAIN_SIMD_CLONES void gradient_kernel(Backward<T> b) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < b.count; ++i) {
    const Point at = Function::point(to_float(b.input[i]));
    b.input_gradient[i] = from_float<T>(to_float(b.output_gradient[i]) * at.slope);
  }
}

template <class Function, class T>
DSTRAIN_SIMD_CLONES void backward_kernel(Backward<T> b) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < b.count; ++i) {
    const Point at = Function::point(to_float(b.input[i]));
    b.output[i] = from_float<T>(at.value);
    b.input_gradient[i] = from_float<T>(to_float(b.output_gradient[i]) * at.slope);
  }
}

template <class Function, class T>
DSTRAIN_SIMD_CLONES void gated_backward_kernel(Backward<T> b) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < b.count; ++i) {
    const Point at = Function::point(to_float(b.input[i]));
    const float gradient = to_float(b.output_gradient[i]);
    const float factor = to_float(b.factor[i]);
    b.factor_gradient[i] = from_float<T>(gradient * at.value);
    b.input_gradient[i] = from_float<T>(gradient * factor * at.slope);
    if (b.output != nullptr) b.output[i] = from_float<T>(at.value * factor);
  }
}

/// Elements that lie one behind the other in every tensor: part of one row, or of all rows of
/// tensors that are dense.
struct Piece {
  std::int64_t row;
  std::int64_t column;
  std::int64_t count;
  template <class T>
  T* of(const TensorView& view) const {
    return elements<T>(view) + row * view.row_stride() + column;
  }
};

/// Calls `body` for the pieces of tensors that are like `shape`, in parallel.
template <class Body>
void for_pieces(const TensorView& shape, bool dense, const Body& body) {
  if (dense) {
    for_chunks(shape.numel(), elementwise_chunk, [&](std::int64_t begin, std::int64_t end) {
      body(Piece{0, begin, end - begin});
    });
    return;
  }
  if (shape.numel() == 0) return;
  const std::int64_t columns = columns_of(shape);
  const std::int64_t rows = std::max(std::int64_t{1}, elementwise_chunk / columns);
  for_chunks(rows_of(shape), rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(Piece{row, 0, columns});
  });
}

/// Those that are empty count as dense.
bool all_dense(std::initializer_list<const TensorView*> views) {
  return std::ranges::all_of(views, [](const TensorView* view) { return view->dense(); });
}

template <class Function, class T>
void run_forward(const ActivationArgs& args) {
  const bool dense = all_dense({&args.input, &args.factor, &args.output});
  for_pieces(args.input, dense, [&](const Piece& piece) {
    Forward<T> task{
        .input = piece.of<T>(args.input), .output = piece.of<T>(args.output), .count = piece.count};
    if (args.factor.empty()) {
      forward_kernel<Function>(task);
    } else {
      task.factor = piece.of<T>(args.factor);
      gated_forward_kernel<Function>(task);
    }
  });
}

template <class Function, class T>
void run_backward(const ActivationBackwardArgs& args) {
  const bool dense = all_dense({&args.input, &args.factor, &args.output_gradient,
                                &args.input_gradient, &args.factor_gradient, &args.output});
  for_pieces(args.input, dense, [&](const Piece& piece) {
    Backward<T> task{.input = piece.of<T>(args.input),
                     .output_gradient = piece.of<T>(args.output_gradient),
                     .input_gradient = piece.of<T>(args.input_gradient),
                     .count = piece.count};
    if (!args.output.empty()) task.output = piece.of<T>(args.output);
    if (!args.factor.empty()) {
      task.factor = piece.of<T>(args.factor);
      task.factor_gradient = piece.of<T>(args.factor_gradient);
      gated_backward_kernel<Function>(task);
    } else if (task.output != nullptr) {
      backward_kernel<Function>(task);
    } else {
      gradient_kernel<Function>(task);
    }
  });
}

/// Calls `body(function, element)` for the kind and the dtype of `args`.
template <class Args, class Body>
void dispatch(const Args& args, const Body& body) {
  with_element_type(args.input.dtype(), [&](auto element) {
    with_function(args.kind, [&](auto function) { body(function, element); });
  });
}

}  // namespace

namespace cpu {

void activation_forward(const ActivationArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    dispatch(args, [&](auto function, auto element) {
      run_forward<decltype(function), decltype(element)>(args);
    });
  });
}

void activation_backward(const ActivationBackwardArgs& args, StreamView stream) {
  cpu_stream(stream).launch([args] {
    dispatch(args, [&](auto function, auto element) {
      run_backward<decltype(function), decltype(element)>(args);
    });
  });
}

}  // namespace cpu
}  // namespace dstrain::ops
