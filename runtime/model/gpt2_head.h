#pragma once
#include "runtime/model/gpt2_config.h"
#include "runtime/model/unit.h"
#include "runtime/tensor/arena.h"

namespace dstrain::model {

/// Final norm, logits by the tied wte.weight and cross-entropy: owns ln_f.weight and ln_f.bias,
/// borrows wte.weight, reads "hidden{L}". Works on R rows at a time, at most 1024, so that logits
/// of (R, V) are all that exists. Saves nothing; workspace in both directions: the output of the
/// norm and its two statistics per row, and what a classifier of R rows needs.
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
  Chunk cut_chunk(Arena& arena, std::int64_t rows) const;
  /// The norm of `rows` of the input, (n, C), into rows [begin, begin + n) of a chunk.
  void normalize(const UnitCall& call,
                 const TensorView& rows,
                 const Chunk& chunk,
                 std::int64_t begin,
                 StreamView stream) const;
  /// Calls `body(chunk, begin)` for the chunks of all rows of the call.
  template <class Body>
  void for_chunks(const UnitCall& call, std::int64_t rows, const Body& body) const;
  void last_logits(const UnitCall& call, StreamView stream) const;

  std::int64_t vocabulary_;
  std::int64_t channels_;
  UnitOptions options_;
  float eps_;
  UnitSpec spec_;
};

}  // namespace dstrain::model
