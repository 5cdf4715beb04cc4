#include <algorithm>
#include <limits>

#include "runtime/base/label.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/classifier.h"
#include "runtime/ops/classifier_chunks.h"
#include "runtime/ops/cuda/block_sum.h"
#include "runtime/ops/cuda/copies.h"
#include "runtime/ops/cuda/cuda_ops.h"
#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/cuda/loss_sum.h"
#include "runtime/ops/cuda/product.h"
#include "runtime/ops/cuda/row_parts.h"
#include "runtime/ops/elements.h"
#include "runtime/ops/fast_exp.h"

namespace dstrain::ops::gpu {
namespace {

constexpr int row_threads = 512;

/// Statistics of a row's softmax.
struct Softmax {
  float largest;
  double sum;  ///< of e^(logit - largest)
};

template <class T>
struct CrossEntropy {
  T* logits;  ///< overwritten by their gradient
  const std::int32_t* labels;
  float factor;
  const float* label_weight;  ///< null: no gradient
  float* losses;
  std::int64_t classes;
  std::int64_t stride;
};

struct RowShared {
  float largest[row_threads / warp_threads];
  BlockSum<double, row_threads> sum;
};

DSTRAIN_DEVICE float largest_of_block(RowShared& s, float value) {
  for (int lanes = warp_threads / 2; lanes > 0; lanes /= 2) {
    value = fmaxf(value, shuffle_xor(value, lanes));
  }
  if (thread() % warp_threads == 0) s.largest[thread() / warp_threads] = value;
  sync();
  for (const float of_warp : s.largest) value = fmaxf(value, of_warp);
  return value;
}

/// Calls `body(part, loaded)` for the thread's logits of a row, which is aligned to 16 bytes. Two
/// packs are loaded before the first is used.
template <class T, class Body>
DSTRAIN_DEVICE void for_logits(const T* logits, std::int64_t classes, const Body& body) {
  constexpr int numel = pack_numel<T>;
  constexpr std::int64_t step = row_threads * numel;
  std::int64_t begin = static_cast<std::int64_t>(thread()) * numel;
  for (; begin + step + numel <= classes; begin += 2 * step) {
    const WholePart<numel> one{begin};
    const WholePart<numel> other{begin + step};
    const auto first = one.load(logits);
    const auto second = other.load(logits);
    body(one, first);
    body(other, second);
  }
  for (; begin + numel <= classes; begin += step) {
    const WholePart<numel> part{begin};
    body(part, part.load(logits));
  }
  for (; begin < classes; begin += step) {
    const std::int64_t left = classes - begin;
    const PartInSingles<numel> part{begin, left < numel ? static_cast<int>(left) : numel};
    body(part, part.load(logits));
  }
}

/// Each thread rescales its sum when it reads a larger logit (Milakov & Gimelshein 2018).
template <class T>
DSTRAIN_DEVICE Softmax softmax_of(RowShared& s, const T* logits, std::int64_t classes) {
  float largest = -std::numeric_limits<float>::max();
  float sum = 0;
  for_logits(logits, classes, [&](const auto& part, const auto& own) {
    const float before = largest;
    part.each([&](int j) {
      const float logit = to_float(own.at[j]);
      largest = logit > largest ? logit : largest;
    });
    sum *= exp2f((before - largest) * log2_e);
    part.each([&](int j) { sum += exp2f((to_float(own.at[j]) - largest) * log2_e); });
  });
  const float of_all = largest_of_block(s, largest);
  return {of_all, s.sum.add(static_cast<double>(sum * exp2f((largest - of_all) * log2_e)))};
}

/// One block per row. A label outside the classes makes the loss NaN, which ends the step.
template <class T>
DSTRAIN_KERNEL(row_threads)
cross_entropy_kernel(DSTRAIN_ARGUMENT CrossEntropy<T> args) {
  constexpr int numel = pack_numel<T>;
  const std::int64_t row = block_x();
  T* const logits = args.logits + row * args.stride;
  const std::int32_t label = args.labels[row];
  if (label == ignored_label) {
    if (thread() == 0) args.losses[row] = 0;
    if (args.label_weight == nullptr) return;
    for_parts<numel, row_threads>(args.classes, true,
                                  [&](const auto& part) { part.store(Pack<T, numel>{}, logits); });
    return;
  }
  const Softmax softmax = softmax_of(shared<RowShared>(), logits, args.classes);
  const bool known = label >= 0 && label < args.classes;
  if (thread() == 0) {
    const double own = known ? static_cast<double>(to_float(logits[label]))
                             : std::numeric_limits<double>::quiet_NaN();
    args.losses[row] =
        args.factor *
        static_cast<float>(log(softmax.sum) - (own - static_cast<double>(softmax.largest)));
  }
  if (args.label_weight == nullptr) return;
  sync();  // the gradient overwrites the label's logit
  const float weight = args.factor * *args.label_weight;
  const auto scale = static_cast<float>(static_cast<double>(weight) / softmax.sum);
  for_logits(logits, args.classes, [&](const auto& part, const auto& own) {
    Pack<float, numel> out{};
    part.each([&](int j) {
      const float value = exp2f((to_float(own.at[j]) - softmax.largest) * log2_e) * scale;
      out.at[j] = part.begin + j == label ? value - weight : value;
    });
    part.store(rounded<T>(out), logits);
  });
}

/// A range of classes.
struct Classes {
  std::int64_t begin;
  std::int64_t count;
};

/// A workspace matrix from column `begin` on.
ProductMatrix columns_from(const TensorView& rows, std::int64_t begin) {
  return {elements<std::byte>(rows) + begin * size_of(rows.dtype()), rows.dtype(), rows.shape()[1]};
}
ProductMatrix rows_of_classes(const TensorView& matrix, const Classes& some) {
  return product_matrix(matrix.rows(some.begin, some.count));
}

/// A chunk of a classifier's rows.
struct Chunk {
  const ClassifierChunks& chunks;
  TensorView input;   ///< (rows, C)
  TensorView weight;  ///< (V, C)
  [[nodiscard]] std::int64_t rows() const { return input.shape()[0]; }
  [[nodiscard]] std::int64_t channels() const { return input.shape()[1]; }
  [[nodiscard]] std::int64_t classes() const { return weight.shape()[0]; }
  /// Calls `body(some)` for the classes of each product.
  template <class Body>
  void for_classes(const Body& body) const {
    const std::int64_t main = chunks.main_classes();
    body(Classes{0, main});
    if (main < classes()) body(Classes{main, classes() - main});
  }
};

/// Calls `body(chunk, first_row)` for all chunks.
template <class Args, class Body>
void for_chunks(const Args& args, ClassifierChunks::Purpose purpose, const Body& body) {
  Arena arena(args.workspace);
  const std::int64_t rows = args.input.shape()[0];
  const ClassifierChunks chunks(arena,
                                {.rows = rows,
                                 .channels = args.input.shape()[1],
                                 .classes = args.weight.shape()[0],
                                 .dtype = args.input.dtype()},
                                purpose);
  for (std::int64_t first = 0; first < rows; first += chunks.rows()) {
    body(Chunk{chunks, args.input.rows(first, std::min(chunks.rows(), rows - first)), args.weight},
         first);
  }
}

void compute_logits(const Chunk& c, StreamView stream) {
  c.for_classes([&](const Classes& some) {
    multiply({.op = "classifier",
              .a = product_matrix(c.input),
              .b = rows_of_classes(c.weight, some),
              .out = columns_from(c.chunks.logits(), some.begin),
              .shape = {c.rows(), some.count, c.channels()},
              .b_transposed = true},
             c.chunks.products(), stream);
  });
}

void compute_losses(const Chunk& c,
                    const ClassifierLossArgs& args,
                    std::int64_t first,
                    StreamView stream) {
  with_element_type(c.input.dtype(), [&](auto element) {
    using T = decltype(element);
    launch(
        "classifier_loss", cross_entropy_kernel<T>,
        {.x = c.rows(), .threads = row_threads, .shared_bytes = sizeof(RowShared)},
        CrossEntropy<T>{elements<T>(c.chunks.logits()), elements<std::int32_t>(args.labels) + first,
                        args.factor, floats(args.label_weight), floats(c.chunks.losses()) + first,
                        c.classes(), c.chunks.stride()},
        stream);
  });
}

void compute_weight_gradient(const Chunk& c,
                             const TensorView& weight_gradient,
                             bool accumulate,
                             StreamView stream) {
  c.for_classes([&](const Classes& some) {
    multiply({.op = "classifier_loss",
              .a = columns_from(c.chunks.logits(), some.begin),
              .b = product_matrix(c.input),
              .out = rows_of_classes(weight_gradient, some),
              .shape = {some.count, c.channels(), c.rows()},
              .a_transposed = true,
              .accumulate = accumulate},
             c.chunks.products(), stream);
  });
}

void compute_input_gradient(const Chunk& c, const TensorView& input_gradient, StreamView stream) {
  const bool apart = !c.chunks.sums().empty();
  const TensorView sums = apart ? c.chunks.sums().rows(0, c.rows()) : input_gradient;
  c.for_classes([&](const Classes& some) {
    multiply({.op = "classifier_loss",
              .a = columns_from(c.chunks.logits(), some.begin),
              .b = rows_of_classes(c.weight, some),
              .out = product_matrix(sums),
              .shape = {c.rows(), c.channels(), some.count},
              .accumulate = some.begin > 0},
             c.chunks.products(), stream);
  });
  if (apart) gpu::convert(sums, input_gradient, stream);
}

/// Computes the weight's gradient first, because the input's gradient may overwrite the input.
void compute_gradients(const Chunk& c,
                       const ClassifierLossArgs& args,
                       std::int64_t first,
                       StreamView stream) {
  if (!args.weight_gradient.empty()) {
    compute_weight_gradient(c, args.weight_gradient, args.accumulate_weight || first > 0, stream);
  }
  compute_input_gradient(c, args.input_gradient.rows(first, c.rows()), stream);
}

}  // namespace

void classifier_logits(const ClassifierLogitsArgs& args, StreamView stream) {
  for_chunks(args, ClassifierChunks::Purpose::logits, [&](const Chunk& c, std::int64_t first) {
    compute_logits(c, stream);
    gpu::copy_rows(c.chunks.logits().rows(0, c.rows()).columns(0, c.classes()),
                   args.logits.rows(first, c.rows()), stream);
  });
}

void classifier_loss(const ClassifierLossArgs& args, StreamView stream) {
  for_chunks(args, ClassifierChunks::Purpose::loss, [&](const Chunk& c, std::int64_t first) {
    compute_logits(c, stream);
    compute_losses(c, args, first, stream);
    // The chunk's logits now hold their gradient.
    if (!args.label_weight.empty()) compute_gradients(c, args, first, stream);
    if (first + c.rows() < args.input.shape()[0]) return;
    add_losses("classifier_loss", c.chunks.losses(), args.loss_sum, stream);
  });
}

}  // namespace dstrain::ops::gpu
