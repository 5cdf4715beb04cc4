#include "runtime/model/loss_unit.h"

#include <algorithm>

#include "runtime/model/step_runner.h"
#include "runtime/ops/copy_rows.h"
#include "runtime/tensor/arena.h"

namespace dstrain::model {
namespace {

constexpr std::int64_t chunk_rows_max = 1024;

/// Returns rows [begin, begin + count) of a dense (B, T, C) activation, as one sequence.
TensorView rows_from(const TensorView& view, std::int64_t begin, std::int64_t count) {
  if (view.empty()) return {};
  const std::int64_t features = view.shape()[2];
  return view.part(begin * features, {1, count, features});
}

}  // namespace

std::int64_t loss_chunk_rows(std::int64_t rows) {
  const std::int64_t chunks = (rows + chunk_rows_max - 1) / chunk_rows_max;
  return (rows + chunks - 1) / chunks;
}

LossUnit::LossUnit(UnitRecord record)
    : record_(std::move(record)),
      plan_(plan_unit(record_)),
      first_loss_(plan_.forward_steps -
                  static_cast<int>(std::ranges::count(
                      record_.layers, RecordedValue::none, &RecordedLayer::output))) {}

/// The call of a unit for some of its rows.
class LossUnit::Chunk {
 public:
  Chunk(const LossUnit& unit, const UnitCall& whole, const Placement& placement, std::int64_t rows)
      : unit_(unit), call_(whole), placement_(placement) {
    call_.shape = {1, rows};
    call_.cache = nullptr;
  }

  void take_rows(const UnitCall& whole, std::int64_t begin) {
    const std::int64_t rows = call_.shape.tokens;
    inputs_.clear();
    for (const TensorView& input : whole.inputs) inputs_.push_back(rows_from(input, begin, rows));
    if (!whole.labels.empty()) call_.labels = whole.labels.part(begin, {1, rows});
    call_.features = rows_from(whole.features, begin, rows);
    call_.targets = rows_from(whole.targets, begin, rows);
    call_.inputs = inputs_;
    if (!whole.logits.empty()) call_.logits = whole.logits.rows(begin, rows);
  }
  /// Sets the gradients of rows; those of parameters accumulate after the first chunk.
  void take_gradients(const UnitCall& whole, std::int64_t begin) {
    const std::int64_t rows = call_.shape.tokens;
    input_gradients_.clear();
    for (const GradientTarget& input : whole.input_gradients) {
      input_gradients_.push_back({rows_from(input.values, begin, rows), input.accumulate});
    }
    parameter_gradients_.assign(whole.parameter_gradients.begin(), whole.parameter_gradients.end());
    for (GradientTarget& parameter : parameter_gradients_) {
      parameter.accumulate = parameter.accumulate || begin > 0;
    }
    call_.input_gradients = input_gradients_;
    call_.parameter_gradients = parameter_gradients_;
  }
  /// Copies the last rows of the sequences from `begin` on to `arena`.
  void take_last_rows(const UnitCall& whole, std::int64_t begin, Arena& arena, StreamView stream) {
    const std::int64_t rows = call_.shape.tokens;
    inputs_.clear();
    for (const TensorView& input : whole.inputs) {
      const std::int64_t features = input.shape()[2];
      const std::int64_t row = whole.shape.tokens * features;
      const TensorView sequences = input.part(begin * row, {rows, row});
      const TensorView dense = arena.take({1, rows, features}, input.dtype());
      ops::copy_rows(sequences.columns(row - features, features), dense.reshaped({rows, features}),
                     stream);
      inputs_.push_back(dense);
    }
    call_.inputs = inputs_;
    call_.logits = whole.logits.rows(begin, rows);
    call_.workspace = arena.rest();
  }

  /// Computes only the loss or the logits.
  void forward(StreamView stream) const {
    run(0, call_.logits.empty() ? unit_.plan_.forward_steps : unit_.first_loss_ + 1, stream);
  }
  /// Computes both: losses run their forward in their backward.
  void forward_and_backward(StreamView stream) const {
    run(0, unit_.first_loss_, stream);
    run(unit_.plan_.forward_steps, static_cast<int>(unit_.plan_.steps.size()), stream);
  }

 private:
  void run(int first, int end, StreamView stream) const {
    const StepRunner runner({unit_.record_, unit_.plan_, placement_}, call_, stream);
    for (int i = first; i < end; ++i) runner.run(unit_.plan_.steps[static_cast<std::size_t>(i)]);
  }

  const LossUnit& unit_;
  UnitCall call_;
  const Placement& placement_;
  std::vector<TensorView> inputs_;
  std::vector<GradientTarget> input_gradients_;
  std::vector<GradientTarget> parameter_gradients_;
};

/// A batch is cut into chunks: of all its rows or, for the logits of the last positions, of one row
/// per sequence.
class LossUnit::Planned final : public PlannedUnit {
 public:
  Planned(const LossUnit& unit, BatchShape shape)
      : unit_(unit),
        most_(loss_chunk_rows(shape.rows())),
        all_(place(shape.rows(), Copies::none)),
        last_(place(shape.sequences, Copies::last_rows)) {
    Bytes bytes = 0;
    for (const Chunks::Size* const size : {&all_.whole, &all_.rest, &last_.whole, &last_.rest}) {
      bytes = std::max(bytes, size->copies + size->placement.memory.backward_workspace);
    }
    memory_ = {.forward_workspace = bytes, .backward_workspace = bytes};
  }
  [[nodiscard]] const UnitMemory& memory() const override { return memory_; }

  void forward(const UnitCall& call, StreamView stream) const override {
    const std::int64_t rows = call.shape.rows();
    const bool all = call.logits.empty() || call.logits.shape()[0] == rows;
    if (!all) return last_logits(call, stream);
    for (std::int64_t begin = 0; begin < rows; begin += most_) {
      Chunk chunk = chunk_of(call, all_, begin, rows);
      chunk.take_rows(call, begin);
      chunk.forward(stream);
    }
  }

  void backward(const UnitCall& call, StreamView stream) const override {
    const std::int64_t rows = call.shape.rows();
    for (std::int64_t begin = 0; begin < rows; begin += most_) {
      Chunk chunk = chunk_of(call, all_, begin, rows);
      chunk.take_rows(call, begin);
      chunk.take_gradients(call, begin);
      chunk.forward_and_backward(stream);
    }
  }

 private:
  /// The chunks of some rows: all but the last are whole.
  struct Chunks {
    struct Size {
      Placement placement;
      Bytes copies = 0;  ///< of the last rows of that many sequences, dense
    };
    Size whole;
    Size rest;
  };
  enum class Copies { none, last_rows };
  [[nodiscard]] Chunks place(std::int64_t rows, Copies copies) const {
    return {size_of_chunk(std::min(most_, rows), copies),
            size_of_chunk((rows - 1) % most_ + 1, copies)};
  }
  [[nodiscard]] Chunks::Size size_of_chunk(std::int64_t rows, Copies copies) const {
    Arena copied;
    for (const RecordedValue& value : unit_.record_.values) {
      if (copies == Copies::none || value.input == RecordedValue::none) continue;
      copied.take({rows, value.features}, value.dtype);
    }
    return {place_buffers(unit_.record_, unit_.plan_, {1, rows}), copied.used()};
  }
  [[nodiscard]] Chunk chunk_of(const UnitCall& call,
                               const Chunks& chunks,
                               std::int64_t begin,
                               std::int64_t rows) const {
    const std::int64_t count = std::min(most_, rows - begin);
    return {unit_, call, (count == most_ ? chunks.whole : chunks.rest).placement, count};
  }

  void last_logits(const UnitCall& call, StreamView stream) const {
    for (std::int64_t begin = 0; begin < call.shape.sequences; begin += most_) {
      Arena arena(call.workspace);
      Chunk chunk = chunk_of(call, last_, begin, call.shape.sequences);
      chunk.take_last_rows(call, begin, arena, stream);
      chunk.forward(stream);
    }
  }

  const LossUnit& unit_;
  std::int64_t most_;
  Chunks all_;
  Chunks last_;
  UnitMemory memory_;
};

std::unique_ptr<const PlannedUnit> LossUnit::plan(BatchShape shape) const {
  return std::make_unique<Planned>(*this, shape);
}

}  // namespace dstrain::model
