#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/device/stream.h"
#include "runtime/model/model.h"
#include "runtime/model/parameter_source.h"
#include "runtime/optim/optimizer.h"

namespace dstrain::engine {

/// The micro step of an optimizer step that is running.
struct MicroStep {
  std::int64_t index = 0;
  std::int64_t count = 1;
  [[nodiscard]] bool first() const { return index == 0; }
  [[nodiscard]] bool last() const { return index + 1 == count; }
};

/// Sources of the values of all parameters and optimizer states.
struct StateSources {
  const model::ParameterSource& parameters;  ///< in f32, as the optimizer updates them
  /// In the order of Optimizer::state_names(); empty: zero, as at the start of training.
  std::span<const model::ParameterSource* const> optimizer{};
};

/// A state in a checkpoint, with one value per element of every parameter.
struct SavedState {
  std::string name;  ///< "fp32", those of the optimizer, and "weights" when units see bf16 or f16
  DType dtype = DType::f32;
  bool rounded = false;  ///< "weights": rounded from the others; a resume does not read them
};

/// Elements [begin, end) of a parameter, row-major.
struct ParameterSlice {
  std::string parameter;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Values of one of saved_states() for one of saved_slices(), from its element `begin` on.
struct SavedValues {
  std::size_t slice = 0;
  std::size_t state = 0;
  std::int64_t begin = 0;
};
/// The memory that saved values are copied to.
struct SaveTarget {
  HostView values;      ///< of the state's dtype
  HostView not_finite;  ///< (1) i32: becomes 1 when one of them is a NaN or an infinity
};
/// Returns the memory for the given values. Called for consecutive ranges of a slice in order, or
/// for the whole slice at once.
using SaveTargetOf = FunctionRef<SaveTarget(SavedValues values, Shape shape)>;

/// Holds parameters, gradients and optimizer states, however they are split over ranks and tiers.
/// The engine acquires a unit's parameters before it runs the unit and reduces its gradients
/// afterwards; the unit does the same for its tiles, one at a time. Every rank makes the same calls
/// in the same order. `stream` is the computing stream: the store's work goes to it, or to streams
/// that are ordered with it.
class ParameterStore {
 public:
  virtual ~ParameterStore() = default;

  /// Loads all parameters and states from `sources`. Each rank reads only its own slices.
  /// Collective.
  virtual void load(const StateSources& sources, StreamView stream) = 0;

  /// The states and slices of a checkpoint of this store. The slices of all ranks tile every
  /// parameter and are distributed evenly, independent of how much a rank holds. The slices of a
  /// rank in a parameter, or in each tile of it, follow each other in order.
  [[nodiscard]] virtual std::vector<SavedState> saved_states() const = 0;
  [[nodiscard]] virtual std::vector<ParameterSlice> saved_slices(int rank) const = 0;
  /// Copies the values of this rank's slices, as they are between steps, to host memory, and waits
  /// for the copies.
  virtual void copy_saved(SaveTargetOf target_of) = 0;

  /// Announces the parts that will be acquired next: `parts` in order, `rounds` times. The store
  /// may fetch ahead. Another call, or an acquire() of a part that was not expected, replaces this.
  /// The same on every rank. `parts` must stay valid until then.
  virtual void expect(std::span<const model::PartId> parts, std::int64_t rounds) = 0;

  /// Returns the whole parameters that `part` uses, owned then borrowed (empty views for those in
  /// tiles), in the model's dtype and the shapes of their specs, or that of the tile. Valid until
  /// release(). The addresses of a part are the same each time.
  virtual std::span<const TensorView> acquire(model::PartId part, StreamView stream) = 0;
  virtual void release(model::PartId part, StreamView stream) = 0;

  /// Call before the micro steps of a step. Returns the scalars that step() must find on the
  /// device, by parameter group. The store may update states early from then on.
  virtual std::span<const rules::ScalarValues> begin_step(const optim::StepScalars& scalars) = 0;
  /// Call before the units of a micro step.
  virtual void begin(MicroStep micro_step) = 0;
  /// The targets for the parameter gradients of the backward of `part`, owned then borrowed; empty
  /// targets for frozen parameters.
  virtual std::span<const model::GradientTarget> gradients(model::PartId part,
                                                           StreamView stream) = 0;
  /// Call after the backward of `part`. Gradients that are complete may be summed over the ranks
  /// and, in the last micro step, be used for updates: the part is not acquired again before
  /// step().
  virtual void reduce(model::PartId part, StreamView stream) = 0;

  /// Call after the last micro step. Adds the squares of the gradients that this rank counts (over
  /// all ranks, each element once) to its `own` total, (ops::step_total_numel) i64, and gathers the
  /// totals of all ranks into `totals`, (N, ops::step_total_numel).
  virtual void gather_totals(TensorView own, TensorView totals, StreamView stream) = 0;
  /// Updates the parameters from the gradients, which are invalid afterwards.
  virtual void step(const optim::StepTensors& step, StreamView stream) = 0;
  /// Call after a step that was not taken. Returns the last parameter, in the order of the model,
  /// of which this rank has gradients that are not finite: backward began to overflow there.
  /// Returns nothing if it cannot tell. `sum`, an ExactSum on the computing device, is scratch
  /// memory.
  virtual std::optional<std::string> last_not_finite(TensorView sum) = 0;
};

}  // namespace dstrain::engine
