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

/// The inputs of a step besides the model, its sums and its decision, in device memory. One copy
/// from the host fills it. The decision is copied to the host, which waits only when it reads the
/// result.
class StepBlock {
 public:
  struct Options {
    std::int64_t rows = 0;           ///< most tokens of all micro-batches of a step together
    std::int64_t source_rows = 0;    ///< the same of sources,
    std::int64_t sources = 0;        ///< and their number
    bool documents = false;          ///< batches say where documents begin
    std::int64_t features = 0;       ///< F: floats for each token
    std::int64_t targets = 0;        ///< K: likewise
    std::int64_t micro_batches = 1;  ///< of a step
    int ranks = 1;
    int parameter_groups = 1;
  };
  /// Bytes on a device of that kind, and on the host for transfers.
  static FrameBytes bytes(const Options& options, DeviceKind device);
  struct Memory {
    MemoryResource& device;
    MemoryResource& host;
  };
  StepBlock(const Options& options, Memory memory, StreamView stream);

  /// Values that all micro-batches of a step share.
  struct Numbers {
    std::int64_t step = 0;       ///< as dropout counts
    std::int64_t labels = 0;     ///< that count on all ranks; 0: there are no gradients
    double loss_scale = 1;       ///< factor of the loss before backward
    double gradient_factor = 1;  ///< see Engine::Options
    std::int64_t rounding = 0;   ///< see optim::StepScalars
    std::span<const rules::ScalarValues> scalars{};  ///< by parameter group; none: no update
    bool adds = false;  ///< the sums go on from those of the micro-batches before
  };
  /// Fills in the inputs and zeroes all sums, unless it adds to them; `batches` may change once it
  /// returns. Asynchronous on `stream`.
  void fill(std::span<const MicroBatch> batches, const Numbers& numbers, StreamView stream);
  /// Sets the inputs of micro-batch `index` in `call`. It has the shape call.shape, as those before
  /// it.
  void show(std::size_t index, model::UnitCall& call) const;
  /// (ops::step_total_numel) i64: the sums of this rank. Units add losses, the store adds squares.
  [[nodiscard]] TensorView own_total() const { return results_.own_total; }
  /// (ranks, ops::step_total_numel) i64: memory for the totals of all ranks.
  [[nodiscard]] TensorView totals() const { return results_.totals; }
  /// The sum of the losses of this rank. Waits for all work on `stream`.
  [[nodiscard]] double loss(StreamView stream) const;

  /// Decides on a step from the totals of all ranks. Asynchronous on `stream`.
  void decide(std::int64_t step, double norm_max, StreamView stream);
  /// Inputs of the updates of that step.
  [[nodiscard]] optim::StepTensors tensors() const {
    return {inputs_.scalars, results_.decision, inputs_.rounding};
  }
  /// Returns the decision on `step`, which is the last one or the one before. Waits for it, and
  /// throws earlier failures of the stream.
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
    TensorView features;        ///< (rows, F) f32, or empty
    TensorView targets;         ///< (rows, K) f32, or empty
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
  /// A decision that is being copied to the host.
  struct Told {
    HostView decision;
    std::optional<Event> point;
  };
  [[nodiscard]] TensorView own_loss() const;
  Told& told(std::int64_t step) { return told_.at(static_cast<std::size_t>(step) % told_.size()); }
  void stage(const TensorView& values, const TensorView& target);
  /// Values at index `begin` of `target`.
  template <class T>
  void stage(std::span<const T> values, std::int64_t begin, const TensorView& target);

  bool apart_;          ///< whether the device's memory is not the host's
  HostBuffer staging_;  ///< decisions, then the inputs, which CPU units read from here
  Buffer device_;       ///< the results, then the inputs if `apart_`
  Inputs staged_;
  Inputs inputs_;
  Results results_;
  std::array<Told, 2> told_;
  std::optional<Event> copied_;  ///< the inputs, if `apart_`
  CpuStream host_stream_{CpuStream::Mode::inline_on_caller};
  HostQueue waiting_{HostQueue::Mode::inline_on_caller};
};

}  // namespace dstrain::engine
