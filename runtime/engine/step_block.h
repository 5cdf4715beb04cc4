#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/device/cpu_stream.h"
#include "runtime/device/event.h"
#include "runtime/engine/frame.h"
#include "runtime/engine/micro_batch.h"
#include "runtime/model/unit.h"
#include "runtime/ops/decide_step.h"
#include "runtime/optim/optimizer.h"
#include "runtime/tensor/arena.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::engine {

/// What a step reads besides the model, sums up and decides, on the device, where units and updates
/// find it. One copy from the host fills it. What was decided goes to the host, where nobody waits
/// for it before he asks.
class StepBlock {
 public:
  struct Options {
    std::int64_t rows = 0;           ///< tokens at most, of all micro batches of a step together
    std::int64_t source_rows = 0;    ///< likewise of sources,
    std::int64_t sources = 0;        ///< and how many there are
    bool documents = false;          ///< it is told where they begin
    std::int64_t micro_batches = 1;  ///< of a step
    int ranks = 1;
    int parameter_groups = 1;
  };
  /// Of a device of that kind, and of the host for what crosses between the two.
  static FrameBytes bytes(const Options& options, DeviceKind device);
  struct Memory {
    MemoryResource& device;
    MemoryResource& host;
  };
  StepBlock(const Options& options, Memory memory, StreamView stream);

  /// What all micro batches of a step have in common.
  struct Numbers {
    std::int64_t step = 0;       ///< as dropout counts
    std::int64_t labels = 0;     ///< that count on all ranks; 0: nothing has a gradient
    double loss_scale = 1;       ///< of the loss that has gradients
    double gradient_factor = 1;  ///< see Engine::Options
    std::int64_t rounding = 0;   ///< see optim::StepScalars
    std::span<const rules::ScalarValues> scalars{};  ///< by parameter group; none: no update
  };
  /// Takes in what is read, with all sums 0; `batches` may change once it returns. Asynchronous on
  /// `stream`.
  void fill(std::span<const MicroBatch> batches, const Numbers& numbers, StreamView stream);
  /// Hands micro batch `index`, of call.shape as those before it, to a unit.
  void show(std::size_t index, model::UnitCall& call) const;
  /// (ops::step_total_numel) i64: what this rank sums up. The losses come from the units, the
  /// squares from others.
  [[nodiscard]] TensorView own_total() const { return results_.own_total; }
  /// (ranks, ops::step_total_numel) i64: room for those of all ranks.
  [[nodiscard]] TensorView totals() const { return results_.totals; }
  /// The sum of the losses of this rank. Waits for all work on `stream`.
  [[nodiscard]] double loss(StreamView stream) const;

  /// Decides on a step by the totals of all ranks. Asynchronous on `stream`.
  void decide(std::int64_t step, double norm_max, StreamView stream);
  /// For the updates of that step.
  [[nodiscard]] optim::StepTensors tensors() const {
    return {inputs_.scalars, results_.decision, inputs_.rounding};
  }
  /// What was decided on `step`, the last one or that before. Waits for it, and throws what the
  /// stream failed with before.
  [[nodiscard]] ops::StepDecision decision(std::int64_t step);

 private:
  struct Sizes {
    Sizes(const Options& options, DeviceKind kind);
    Bytes inputs;
    Bytes staging;
    Bytes device;
  };
  StepBlock(const Options& options, const Sizes& sizes, Memory memory, StreamView stream);

  struct Inputs {
    Inputs(const TensorView& block, const Options& options);
    TensorView block;           ///< u8: all of them
    TensorView tokens;          ///< (rows) i32
    TensorView labels;          ///< (rows) i32
    TensorView document_start;  ///< (rows) i32, or empty
    TensorView source;          ///< (source_rows) i32
    TensorView source_count;    ///< (sources) i32
    TensorView label_weight;    ///< (1) f32: loss scale x gradient factor / label count
    TensorView label_count;     ///< (1) f64
    TensorView loss_scale;      ///< (1) f64
    TensorView rounding;        ///< (1) i64
    TensorView scalars;         ///< (parameter_groups, 16) f32
    TensorView counters;        ///< (micro batches, 2) i64: see model::DropoutSource
    Bytes bytes;
  };
  struct Results {
    Results(const TensorView& block, const Options& options);
    TensorView own_total;  ///< (step_total_numel) i64
    TensorView totals;     ///< (ranks, step_total_numel) i64
    TensorView decision;   ///< (StepDecision::numel) f64
    Bytes bytes;
  };
  /// A decision on its way to the host.
  struct Told {
    HostView decision;
    std::optional<Event> point;
  };
  [[nodiscard]] TensorView own_loss() const;
  Told& told(std::int64_t step) { return told_.at(static_cast<std::size_t>(step) % told_.size()); }
  void stage(const TensorView& values, const TensorView& target);
  void stage(std::span<const std::int32_t> values, std::int64_t row, const TensorView& target);

  bool apart_;          ///< whether the device's memory is not the host's
  HostBuffer staging_;  ///< what was decided, then the inputs: on the CPU units read these
  Buffer device_;       ///< the results, then the inputs when it is apart
  Inputs staged_;
  Inputs inputs_;
  Results results_;
  std::array<Told, 2> told_;
  std::optional<Event> copied_;  ///< the inputs, to a device that is apart
  CpuStream host_stream_{CpuStream::Mode::inline_on_caller};
  HostQueue waiting_{HostQueue::Mode::inline_on_caller};
};

}  // namespace dstrain::engine
