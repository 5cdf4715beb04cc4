#pragma once
#include "runtime/model/gpt2_config.h"
#include "runtime/model/unit.h"

namespace dstrain::model {

/// Token plus position embedding, dropped at embd_pdrop: owns wte.weight (V, C) and wpe.weight
/// (P, C), writes "hidden0". Saves nothing; backward needs C values per token when it drops.
class Gpt2Embedding final : public Unit {
 public:
  Gpt2Embedding(const Gpt2Config& config, DType dtype);
  [[nodiscard]] const UnitSpec& spec() const override { return spec_; }
  [[nodiscard]] UnitMemory memory(BatchShape shape) const override;
  void forward(const UnitCall& call, StreamView stream) const override;
  void backward(const UnitCall& call, StreamView stream) const override;

 private:
  std::int64_t channels_;
  DType dtype_;
  float drop_rate_;
  UnitSpec spec_;
};

}  // namespace dstrain::model
