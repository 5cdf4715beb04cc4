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

/// Which micro step of an optimizer step is running.
struct MicroStep {
  std::int64_t index = 0;
  std::int64_t count = 1;
  [[nodiscard]] bool first() const { return index == 0; }
  [[nodiscard]] bool last() const { return index + 1 == count; }
};

/// Where the values of all parameters come from, and those of the optimizer's states.
struct StateSources {
  const model::ParameterSource& parameters;  ///< in f32, as the optimizer updates them
  /// In the order of Optimizer::state_names(); empty: zero, as at the start of training.
  std::span<const model::ParameterSource* const> optimizer{};
};

/// A state that a checkpoint holds, a value per element of every parameter.
struct SavedState {
  std::string name;  ///< "fp32", those of the optimizer, and "weights" when units see bf16 or f16
  DType dtype = DType::f32;
  bool rounded = false;  ///< "weights": made of the others, from which a run goes on
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
/// Where they go.
struct SaveTarget {
  HostView values;      ///< of the state's dtype
  HostView not_finite;  ///< (1) i32: becomes 1 when one of them is a NaN or an infinity
};
/// Tells that, of the parts of a slice in order, or of all of it at once.
using SaveTargetOf = FunctionRef<SaveTarget(SavedValues values, Shape shape)>;

/// Holds the parameters, their gradients and the optimizer's states, in whatever way they are
/// split over ranks and tiers. The engine asks for a unit's parameters before it runs the unit and
/// hands its gradients over after, and the unit likewise for its tiles, one at a time: `part` is an
/// index into Model::parts(). Every rank makes the same calls in the same order. Stage 0 is
/// one more implementation. `stream` is the one that computes: work goes to it, or to streams
/// ordered with it.
class ParameterStore {
 public:
  virtual ~ParameterStore() = default;

  /// Sets all parameters and states from `sources`. Each rank reads only its own slices.
  /// Collective.
  virtual void load(const StateSources& sources, StreamView stream) = 0;

  /// What a checkpoint of this store consists of. The slices of all ranks tile every parameter, and
  /// are shared out evenly, however much a rank holds; those of a rank in a parameter, or in each
  /// tile of it, follow each other in order.
  [[nodiscard]] virtual std::vector<SavedState> saved_states() const = 0;
  [[nodiscard]] virtual std::vector<ParameterSlice> saved_slices(int rank) const = 0;
  /// Copies the values of this rank's slices, as they are between steps, to memory of the host.
  /// Waits until they are there.
  virtual void copy_saved(SaveTargetOf target_of) = 0;

  /// Which parts will be acquired next: `parts` in order, `rounds` times over. Lets the store fetch
  /// ahead; replaces what was expected before, as does an acquire() of another part. The same on
  /// every rank. `parts` must stay until then.
  virtual void expect(std::span<const model::PartId> parts, std::int64_t rounds) = 0;

  /// The whole parameters that `part` uses, owned then borrowed (empty views of those in tiles), in
  /// the model's dtype and the shapes of their specs, or the tile; valid until release(). The
  /// addresses of a part are the same each time.
  virtual std::span<const TensorView> acquire(model::PartId part, StreamView stream) = 0;
  virtual void release(model::PartId part, StreamView stream) = 0;

  /// Called before the micro steps of a step. Returns what step() is to find on the device, by
  /// parameter group; lets the store update before that what it need not keep until then.
  virtual std::span<const rules::ScalarValues> begin_step(const optim::StepScalars& scalars) = 0;
  /// Called before the units of a micro step.
  virtual void begin(MicroStep micro_step) = 0;
  /// Where the backward of `part` puts its parameter gradients, owned then borrowed; empty targets
  /// for those that are frozen.
  virtual std::span<const model::GradientTarget> gradients(model::PartId part,
                                                           StreamView stream) = 0;
  /// The backward of `part` is done. What is complete by now may be summed over the ranks and, in
  /// the last micro step, get new values: it is not acquired again before step().
  virtual void reduce(model::PartId part, StreamView stream) = 0;

  /// After the last micro step: adds the squares of the gradients that this rank answers for to its
  /// `own` total (over all ranks, each element counts once), (ops::step_total_numel) i64, and puts
  /// those of all ranks into `totals`, (N, ops::step_total_numel).
  virtual void gather_totals(TensorView own, TensorView totals, StreamView stream) = 0;
  /// Updates the parameters from the gradients, which are spent after that.
  virtual void step(const optim::StepTensors& step, StreamView stream) = 0;
  /// After a step that was not taken: the last parameter, in the order of the model, of which this
  /// rank has gradients that are not finite, where backward began to overflow; nothing where it
  /// cannot tell. `sum`, an ExactSum where
  /// units compute, is for its use.
  virtual std::optional<std::string> last_not_finite(TensorView sum) = 0;
};

}  // namespace dstrain::engine
