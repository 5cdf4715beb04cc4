#pragma once
#include <cstdint>

#include "runtime/base/label.h"
#include "runtime/base/units.h"
#include "runtime/device/stream.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::ops {

/// The last layer of a language model: logits (R, V) f32 of R rows of C channels over V classes
/// (its vocabulary) are input weight'. On a GPU, a loss rounds them to `dtype` first.
struct ClassifierSizes {
  std::int64_t rows;      ///< R
  std::int64_t channels;  ///< C
  std::int64_t classes;   ///< V
  DType dtype;            ///< of input and weight: f32, bf16 or f16
};

/// Returns the bytes of workspace that the ops below need on a kind of device, which need not be
/// present. CPU: all logits in f32, the workspace of one piece's products, and a sum of gradients
/// of the input. CUDA: the logits of a chunk of rows, and the workspace of a product
/// (classifier_chunks.h).
Bytes classifier_workspace(const ClassifierSizes& sizes, DeviceKind device);

struct ClassifierLogitsArgs {
  TensorView input;      ///< (R, C)
  TensorView weight;     ///< (V, C)
  TensorView logits;     ///< (R, V) f32: written; may be host memory, as for a copy
  TensorView workspace;  ///< u8: at least classifier_workspace() bytes, 64-byte aligned

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(input);
    visit(weight);
    visit(workspace);
    visit(logits);
  }
};

/// Asynchronous on `stream`.
void classifier_logits(const ClassifierLogitsArgs& args, StreamView stream);

/// Adds `factor` times the cross-entropy of the logits' softmax to loss_sum. With `label_weight`,
/// also computes gradients from that of the logits, factor (softmax - onehot) label_weight, which
/// is zero in rows that do not count.
struct ClassifierLossArgs {
  TensorView input;                ///< (R, C)
  TensorView weight;               ///< (V, C)
  TensorView labels;               ///< (R) i32, in [0, V) or ignored_label
  float factor = 1;                ///< of this loss in a sum of several
  TensorView loss_sum;             ///< (1) f64: losses of rows that count are added to it, in order
  TensorView label_weight{};       ///< (1) f32; empty: the loss alone
  TensorView input_gradient{};     ///< (R, C) of the dtype of input: written; may be input itself
  TensorView weight_gradient{};    ///< (V, C) f32: written; empty: not computed
  bool accumulate_weight = false;  ///< add to weight_gradient instead
  TensorView workspace;            ///< u8: at least classifier_workspace() bytes, 64-byte aligned

  /// Calls `visit` with each tensor.
  void for_each_tensor(const auto& visit) {
    visit(input);
    visit(weight);
    visit(labels);
    visit(loss_sum);
    visit(label_weight);
    visit(input_gradient);
    visit(weight_gradient);
    visit(workspace);
  }
};

/// A label outside the classes is a bug, and on the CPU an Error{internal} of the stream.
/// Asynchronous on `stream`.
void classifier_loss(const ClassifierLossArgs& args, StreamView stream);

}  // namespace dstrain::ops
