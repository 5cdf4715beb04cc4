#pragma once
#include "runtime/model/gpt2_config.h"
#include "runtime/model/gpt2_head_parts.h"
#include "runtime/model/unit.h"

namespace dstrain::model {

/// Final norm, logits by the tied wte.weight and cross-entropy: owns ln_f.weight and ln_f.bias,
/// borrows wte.weight, reads "hidden{L}". Works on R rows at a time, at most 1024, so that logits
/// of (R, V) are all that exists. Saves nothing; workspace in both directions: R (V + 5) floats, R
/// C values of the model's dtype, in bf16 the gradient of a piece of the logits, and what the
/// products need.
class Gpt2Head final : public Unit {
 public:
  Gpt2Head(const Gpt2Config& config, const UnitOptions& options);
  [[nodiscard]] const UnitSpec& spec() const override { return spec_; }
  [[nodiscard]] UnitMemory memory(BatchShape shape) const override;
  /// The loss, or with call.logits those of the last position of each sequence.
  void forward(const UnitCall& call, StreamView stream) const override;
  /// Loss and gradients in one go.
  void backward(const UnitCall& call, StreamView stream) const override;
  /// R: how many of `rows` rows are worked on at a time.
  static std::int64_t chunk_rows(std::int64_t rows);

 private:
  struct Chunk;
  Gpt2HeadSpace cut_space(Arena& arena, std::int64_t rows) const;
  [[nodiscard]] Chunk cut_chunk(const UnitCall& call, std::int64_t begin) const;
  /// With `label_weight`, not empty, also the gradient of the logits.
  void compute_loss(const UnitCall& call,
                    const Chunk& chunk,
                    TensorView label_weight,
                    StreamView stream) const;
  void last_logits(const UnitCall& call, StreamView stream) const;

  std::int64_t vocabulary_;
  std::int64_t channels_;
  UnitOptions options_;
  float eps_;
  UnitSpec spec_;
};

}  // namespace dstrain::model
