#include "runtime/engine/frame_plan.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace dstrain::engine {
namespace {

/// The indices of an activation's value and gradient among the intervals, and who touches it.
struct Flow {
  int value = -1;
  int gradient = -1;
  int host = -1;  ///< the value's copy, among the host's intervals
};

class Planner {
 public:
  Planner(const model::Model& model, Frame::Options options) : model_(model), options_(options) {}

  FramePlan run() {
    plan_.units.resize(model_.units.size());
    for (const ScheduledCall& call : options_.mode == FrameMode::inference
                                         ? inference_schedule(model_, options_.shape)
                                         : training_schedule(model_)) {
      call.pass == Pass::forward ? add_forward(call.unit) : add_backward(call.unit);
    }
    plan_.bytes = {place_intervals(plan_.intervals), place_intervals(plan_.host_intervals)};
    return std::move(plan_);
  }

 private:
  [[nodiscard]] int now() const { return static_cast<int>(plan_.calls.size()); }

  int add_interval(Bytes bytes) {
    plan_.intervals.push_back({bytes, now(), now()});
    return static_cast<int>(plan_.intervals.size()) - 1;
  }
  int add_activation(const model::ActivationSpec& activation) {
    const model::BatchShape shape = options_.shape.on(activation.axis);
    return add_interval(shape.rows() * activation.features * size_of(activation.dtype));
  }
  /// Marks an interval as needed by the call that is being added.
  int touch(int interval) {
    plan_.intervals[static_cast<std::size_t>(interval)].last = now();
    return interval;
  }
  const model::UnitMemory& memory_of(int unit) {
    auto& planned = plan_.units[static_cast<std::size_t>(unit)];
    if (planned == nullptr) {
      planned = model_.units[static_cast<std::size_t>(unit)]->plan(options_.shape);
    }
    return planned->memory();
  }
  /// Whether an activation is one of a source that is in the cache.
  [[nodiscard]] bool is_cached(const std::string& name) const {
    return options_.mode == FrameMode::inference && flows_.find(name) == flows_.end() &&
           options_.shape.context > 0;
  }
  Flow& flow_of(const std::string& name) {
    const auto found = flows_.find(name);
    DSTRAIN_CHECK(found != flows_.end(), "activation {} is read before it is written", name);
    return found->second;
  }
  /// The value of an activation for the call that is being added.
  int use(Flow& flow) {
    if (options_.mode == FrameMode::host_checkpointing) spend_pause_on_host(flow);
    return touch(flow.value);
  }
  /// Lets a value be on the host since its last use, if that frees its place for a call at least:
  /// it leaves while the call after its writer runs and comes while the one before this does.
  void spend_pause_on_host(Flow& flow) {
    Interval& value = plan_.intervals[static_cast<std::size_t>(flow.value)];
    const bool stored = flow.host >= 0;
    const int last = stored ? value.last : std::max(value.last, value.first + 1);
    const int arrival = now() - 1;
    if (arrival - last < 2) return;
    if (!stored) {
      value.last = last;
      flow.host = static_cast<int>(plan_.host_intervals.size());
      plan_.host_intervals.push_back({value.bytes, value.first, arrival});
      call_at(value.first).stores.push_back({flow.value, flow.host});
    }
    plan_.host_intervals[static_cast<std::size_t>(flow.host)].last = arrival;
    plan_.intervals.push_back({value.bytes, arrival, now()});
    flow.value = static_cast<int>(plan_.intervals.size()) - 1;
    call_at(arrival).fetches.push_back({flow.value, flow.host});
  }
  FramePlan::Call& call_at(int time) { return plan_.calls[static_cast<std::size_t>(time)]; }
  int work_space(Bytes bytes) { return bytes > 0 ? add_interval(bytes) : -1; }

  void add_forward(int unit) {
    const model::Unit& module = *model_.units[static_cast<std::size_t>(unit)];
    const model::UnitMemory& memory = memory_of(unit);
    FramePlan::Call call{.unit = unit, .pass = Pass::forward};
    for (const std::string& name : module.spec().reads) {
      call.inputs.push_back(is_cached(name) ? -1 : use(flow_of(name)));
    }
    for (const model::ActivationSpec& activation : module.spec().writes) {
      const int value = add_activation(activation);
      const bool fresh = flows_.emplace(activation.name, Flow{value, -1}).second;
      DSTRAIN_CHECK(fresh, "activation {} is written twice", activation.name);
      plan_.activations[activation.name] = activation;
      call.outputs.push_back(value);
    }
    call.saved = work_space(memory.saved);
    call.workspace = work_space(memory.forward_workspace);
    if (options_.mode == FrameMode::training) saved_.push_back(call.saved);
    plan_.calls.push_back(std::move(call));
  }

  void add_backward(int unit) {
    const model::Unit& module = *model_.units[static_cast<std::size_t>(unit)];
    const model::UnitMemory& memory = memory_of(unit);
    const bool last_unit = unit + 1 == static_cast<int>(model_.units.size());
    const bool recompute = options_.mode != FrameMode::training && !last_unit;
    FramePlan::Call call{.unit = unit, .pass = Pass::backward};
    for (const std::string& name : module.spec().reads) {
      Flow& flow = flow_of(name);
      call.inputs.push_back(use(flow));
      const bool accumulates = flow.gradient >= 0;
      if (!accumulates) flow.gradient = add_interval(interval_bytes(flow.value));
      call.input_gradients.push_back(touch(flow.gradient));
      call.input_gradient_accumulates.push_back(accumulates);
    }
    for (const model::ActivationSpec& activation : module.spec().writes) {
      Flow& flow = flow_of(activation.name);
      DSTRAIN_CHECK(flow.gradient >= 0, "activation {} has no reader", activation.name);
      call.output_gradients.push_back(touch(flow.gradient));
      if (recompute) call.outputs.push_back(use(flow));
    }
    if (recompute) {
      call.saved = work_space(memory.saved);
      call.workspace = work_space(std::max(memory.forward_workspace, memory.backward_workspace));
    } else {
      if (!last_unit) call.saved = saved_[static_cast<std::size_t>(unit)];
      if (call.saved >= 0) touch(call.saved);
      call.workspace = work_space(memory.backward_workspace);
    }
    plan_.calls.push_back(std::move(call));
  }

  [[nodiscard]] Bytes interval_bytes(int interval) const {
    return plan_.intervals[static_cast<std::size_t>(interval)].bytes;
  }

  const model::Model& model_;
  Frame::Options options_;
  FramePlan plan_;
  std::map<std::string, Flow> flows_;
  std::vector<int> saved_;  ///< per unit
};

}  // namespace

FramePlan plan_frame(const model::Model& model, Frame::Options options) {
  return Planner(model, options).run();
}

}  // namespace dstrain::engine
