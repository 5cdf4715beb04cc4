#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/engine/frame_runner.h"
#include "runtime/engine/step_block.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::engine {

/// One optimizer step.
struct StepInput {
  std::int64_t step = 1;                      ///< number of its global batch, from 1
  rules::Step update{};                       ///< numbered as the optimizer's states count
  std::span<const MicroBatch> micro_batches;  ///< this rank's, as many on every rank
  std::int64_t labels = 0;                    ///< counted_labels() of all ranks together
  double loss_scale = 1;                      ///< factor of the loss before backward
};

/// Runs the units of a model over a parameter store, by the recorded schedule. Every rank holds one
/// and makes the same calls. Owns the frame. Calls outside a training step synchronize the compute
/// stream before returning.
class Engine {
 public:
  using Inputs = EngineInputs;
  struct Options {
    model::BatchShape shape;
    /// Shape of evaluation and generation; none: `shape`.
    std::optional<model::BatchShape> inference_shape{};
    /// With FrameMode::inference the engine takes no steps.
    FrameMode mode = FrameMode::inference;
    std::int64_t micro_steps = 1;  ///< of a step
    int ranks = 1;
    double gradient_clipping = 0;  ///< largest global norm; 0: none
    /// Factor of the gradients of the mean loss, which norms include.
    double gradient_factor = 1;
    std::uint64_t seed = 0;    ///< of dropout
    int parameter_groups = 1;  ///< of the store
    bool documents = false;    ///< batches say where documents begin
  };
  /// The activation memory that an engine with these options takes.
  static FrameBytes activation_bytes(const model::Model& model, const Options& options);

  /// All of `inputs` must outlive the engine.
  Engine(Inputs inputs, Options options, Streams streams);

  /// Launches the first half of a step: forward and backward of all micro-batches, the sum of their
  /// gradients over the ranks, and the decision whether to take the step. The input may change once
  /// this returns. Throws Error{input} if no label counts. Collective.
  void accumulate(const StepInput& input);
  /// Launches the second half: clipping and the update. Collective.
  void update();

  /// The first half of a step in parts, for a loop that gets its micro-batches one by one:
  /// begin_step(), then run_micro_batch() for each of `micro_batches`, then end_step(). All
  /// collective. `input` has no micro-batches; its labels are those that are expected.
  void begin_step(const StepInput& input, std::int64_t micro_batches);
  /// Runs micro-batch `index` forward and backward, and returns the sum of its losses on this rank.
  double run_micro_batch(const MicroBatch& batch, std::int64_t index);
  /// `labels`: those that counted in the micro-batches of all ranks. Loss, norm and update are
  /// those of that many, whatever was expected. Throws Error{input} if no label counted.
  void end_step(std::int64_t labels);
  /// Returns the decision on `step`, which is the last one or the one before, and waits only for
  /// that. The update of a step that is not taken, because the loss or the gradients were not
  /// finite, leaves the parameters unchanged. If the store updates early and cannot go back, no
  /// other step may follow.
  ops::StepDecision decision(std::int64_t step) { return block_.decision(step); }
  /// Call after a step that was not taken: see ParameterStore.
  std::optional<std::string> last_not_finite();
  /// Whether steps run asynchronously; if not, decision() never waits.
  [[nodiscard]] bool runs_ahead() const {
    return !shares_host_memory(streams_.compute.device().kind);
  }

  /// Returns the sum of the losses of one micro-batch on this rank, without gradients. Collective,
  /// because parameters may have to be gathered.
  double evaluate(const MicroBatch& batch);

  /// Writes the logits, f32, of a batch without labels: (B, V) of the tokens that follow its
  /// sequences, or (B T, V) of those that follow each of its tokens. Collective.
  void logits(const MicroBatch& batch, TensorView logits);

 private:
  void decide();
  void train(std::size_t micro_batch);
  [[nodiscard]] model::UnitCall call_of(std::size_t micro_batch, model::BatchShape shape) const;

  Inputs inputs_;
  Options options_;
  model::BatchShape inference_shape_;
  Streams streams_;
  StepBlock block_;
  StepBlock::Numbers numbers_;      ///< of the step under way,
  std::int64_t micro_batches_ = 0;  ///< and how many it has
  Buffer memory_;                   ///< shared by both frames, of which one is in use at a time
  HostBuffer host_memory_;
  Frame inference_;
  std::optional<Frame> training_;
  FrameRunner runner_;
  std::vector<model::PartId> inference_parts_;  ///< in the order in which they are acquired
  std::vector<model::PartId> training_parts_;
  std::optional<FrameCopies> copies_;  ///< uses the memory of the frame: destroyed first
};

}  // namespace dstrain::engine
