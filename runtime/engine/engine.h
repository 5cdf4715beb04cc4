#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/progress_page.h"
#include "runtime/engine/frame.h"
#include "runtime/engine/frame_copies.h"
#include "runtime/engine/micro_batch.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/model/model.h"
#include "runtime/profile/timeline.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::engine {

/// One optimizer step.
struct StepInput {
  std::int64_t step = 1;  ///< number of the step, from 1
  double learning_rate = 0;
  std::span<const MicroBatch> micro_batches;  ///< this rank's, as many on every rank
  std::int64_t labels = 0;                    ///< counted_labels() of all ranks together
  std::optional<optim::Betas> betas{};        ///< of this step; nothing: the optimizer's own
};

/// What one rank adds to the figures of a step. Plain data, which the ranks tell each other.
struct StepSums {
  ExactSum squares;  ///< of the gradients that it answers for
  double loss = 0;   ///< summed over its own labels
};

struct StepResult {
  double loss = 0;           ///< mean over the counted labels of the global batch, natural log
  double gradient_norm = 0;  ///< before clipping
};

/// Runs a model's units over a parameter store by the recorded schedule. Every rank holds one and
/// makes the same calls. Owns the frame; synchronises the computing stream at the end of each call.
class Engine {
 public:
  struct Parts {
    const model::Model& model;
    ParameterStore& store;
    MemoryResource& activations;
    MemoryResource& host_activations;       ///< for FrameMode::host_checkpointing
    profile::Timeline* timeline = nullptr;  ///< null: nothing is recorded
    ProgressPage* progress = nullptr;       ///< null: nothing is published
  };
  struct Options {
    model::BatchShape shape;
    /// Of evaluation and of what takes no steps; none: `shape`.
    std::optional<model::BatchShape> inference_shape{};
    /// FrameMode::inference: the engine takes no steps.
    FrameMode mode = FrameMode::inference;
    double gradient_clipping = 0;  ///< largest global norm; 0: none
    std::uint64_t seed = 0;        ///< of dropout
  };
  /// The activation memory that such an engine takes.
  static FrameBytes activation_bytes(const model::Model& model, const Options& options);

  /// All of `parts` must outlive the engine.
  Engine(Parts parts, Options options, Streams streams);

  /// The first half of a step: forward and backward of all micro batches, and the sum of their
  /// gradients over the ranks. Throws Error{input} when no label counts. Collective.
  StepSums accumulate(const StepInput& input);
  /// The second half, given what accumulate() has returned on each rank: clipping and the update.
  /// Throws Error{diverged} on every rank when the loss or the gradients are not finite. The
  /// parameters are untouched then, unless the store updates before it knows: no other step may
  /// follow. Collective.
  StepResult update(const StepInput& input, std::span<const StepSums> ranks);

  /// The sum of the losses of one micro batch on this rank, without gradients. Collective, as
  /// parameters may have to be gathered.
  double evaluate(const MicroBatch& batch);

  /// Writes the logits (B, V), f32, that follow the last of each sequence's tokens (B, T).
  /// Collective.
  void next_token_logits(std::span<const std::int32_t> tokens, TensorView logits);

 private:
  struct Context;
  void run(const Frame& frame, const Context& context);
  void run_call(const FrameCall& call, const Context& context);
  [[nodiscard]] model::UnitCall unit_call(const FrameCall& call, const Context& context) const;
  [[nodiscard]] std::vector<int> parts_of(const Frame& frame) const;

  Parts parts_;
  Options options_;
  model::BatchShape inference_shape_;
  Streams streams_;
  DeviceBatch batch_;
  Buffer memory_;  ///< of both frames: only one is in use at a time
  HostBuffer host_memory_;
  Frame inference_;
  std::optional<Frame> training_;
  std::vector<int> first_part_;       ///< per unit: its own
  std::vector<int> inference_parts_;  ///< in the order in which they are acquired
  std::vector<int> training_parts_;
  std::optional<FrameCopies> copies_;  ///< of the training frame; uses the memory: goes first
};

}  // namespace dstrain::engine
