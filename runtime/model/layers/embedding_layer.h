#pragma once
#include <optional>

#include "runtime/model/layer.h"

namespace dstrain::model {

/// Rows of a table by the tokens of the call, plus those of another by their positions.
class EmbeddingLayer final : public Layer {
 public:
  struct Tables {
    ParameterRef tokens;                      ///< (V, C)
    std::optional<ParameterRef> positions{};  ///< (P, C)
  };
  explicit EmbeddingLayer(Tables tables) : tables_(tables) {}
  [[nodiscard]] std::vector<InputUse> inputs() const override { return {}; }
  void forward(const LayerCall& call) const override;
  void backward(const LayerCall& call) const override;

 private:
  Tables tables_;
};

}  // namespace dstrain::model
