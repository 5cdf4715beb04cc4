#include <algorithm>
#include <initializer_list>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/activation.h"
#include "runtime/ops/activation_functions.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/chunks.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

// ivdep: two tensors are the same memory or disjoint, so iterations are independent.

/// The operands of a task, from its first element on.
template <class T>
struct Forward {
  const T* input;
  const T* factor = nullptr;
  T* output;
  std::int64_t count;
};

template <class Function, class T>
DSTRAIN_SIMD_CLONES void forward_kernel(Forward<T> f) {
  DSTRAIN_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < f.count; ++i) {
    f.output[i] = from_float<T>(Function::value(to_float(f.input[i])));
  }
}

template <class Function, class T>
DSTRAIN_SIMD_CLONES void gated_forward_kernel(Forward<T> f) {
  DSTRAIN_INDEPENDENT_ITERATIONS
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
  DSTRAIN_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < b.count; ++i) {
    const Point at = Function::point(to_float(b.input[i]));
    b.input_gradient[i] = from_float<T>(to_float(b.output_gradient[i]) * at.slope);
  }
}

template <class Function, class T>
DSTRAIN_SIMD_CLONES void backward_kernel(Backward<T> b) {
  DSTRAIN_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < b.count; ++i) {
    const Point at = Function::point(to_float(b.input[i]));
    b.output[i] = from_float<T>(at.value);
    b.input_gradient[i] = from_float<T>(to_float(b.output_gradient[i]) * at.slope);
  }
}

template <class Function, class T>
DSTRAIN_SIMD_CLONES void gated_backward_kernel(Backward<T> b) {
  DSTRAIN_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < b.count; ++i) {
    const Point at = Function::point(to_float(b.input[i]));
    const float gradient = to_float(b.output_gradient[i]);
    const float factor = to_float(b.factor[i]);
    b.factor_gradient[i] = from_float<T>(gradient * at.value);
    b.input_gradient[i] = from_float<T>(gradient * factor * at.slope);
    if (b.output != nullptr) b.output[i] = from_float<T>(at.value * factor);
  }
}

/// Elements that are contiguous in every tensor: part of one row, or of all rows if the tensors are
/// dense.
struct Piece {
  std::int64_t row;
  std::int64_t column;
  std::int64_t count;
  template <class T>
  T* of(const TensorView& view) const {
    return elements<T>(view) + row * view.row_stride() + column;
  }
};

/// Calls `body` in parallel for the pieces of tensors of the given shape.
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

/// Empty views count as dense.
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
    with_function<CpuArithmetic>(args.kind, [&](auto function) { body(function, element); });
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
