#pragma once
#include "runtime/model/gpt2_block_parts.h"
#include "runtime/model/gpt2_config.h"
#include "runtime/model/unit.h"

namespace dstrain::model {

/// One pre-norm transformer block: owns the twelve tensors "h.{i}.*", reads "hidden{i}", writes
/// "hidden{i+1}". With F = n_inner, values per token, of the model's dtype where not said
/// otherwise:
///   saved     5 C + F + H + 4: qkv 3 C, attention output C, residual after attention C, the MLP's
///             pre-activation F; f32: log-sum-exp H, mean and rstd of two norms 4
///   forward workspace    C + max(A, F)
///   backward workspace   2 C + max(2 F, 3 C + A), and C more with resid_pdrop
/// where A is what attention needs: on CPUs up to 2 C and 3 C, f32 (ops/attention.h);
/// and, besides, what the largest product needs (ops/matmul.h): on CPUs its panels, C max(3 C, F),
/// or F 2048 with many rows.
/// With `in_splits` > 1 each of the four weights is in that many tiles of rows at most, and the
/// workspace of products is that of a tile, F / in_splits of its columns and, in bf16, an f32 sum.
/// The outputs of norms and GELU are computed again in backward: cheap, and bit-equal.
class Gpt2Block final : public Unit {
 public:
  Gpt2Block(const Gpt2Config& config, std::int64_t layer, const UnitOptions& options);
  [[nodiscard]] const UnitSpec& spec() const override { return spec_; }
  [[nodiscard]] UnitMemory memory(BatchShape shape) const override;
  void forward(const UnitCall& call, StreamView stream) const override;
  void backward(const UnitCall& call, StreamView stream) const override;

 private:
  [[nodiscard]] Gpt2BlockSizes sizes_of(BatchShape shape) const;

  Gpt2Config config_;
  UnitOptions options_;
  UnitSpec spec_;
};

}  // namespace dstrain::model
