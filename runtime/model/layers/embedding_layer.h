#pragma once
#include <optional>

#include "runtime/model/layer.h"

namespace dstrain::model {

/// Adds rows of a table by the tokens of an axis and, if present, rows of another by position.
class EmbeddingLayer final : public Layer {
 public:
  struct Tables {
    ParameterRef tokens;                      ///< (V, C)
    std::optional<ParameterRef> positions{};  ///< (P, C)
    Axis axis = Axis::target;
  };
  explicit EmbeddingLayer(Tables tables) : tables_(tables) {}
  [[nodiscard]] std::vector<InputUse> inputs() const override { return {}; }
  void forward(const LayerCall& call) const override;
  void backward(const LayerCall& call) const override;

 private:
  [[nodiscard]] const TensorView& tokens(const LayerCall& call) const {
    return tables_.axis == Axis::source ? call.unit.source : call.unit.tokens;
  }

  Tables tables_;
};

}  // namespace dstrain::model
