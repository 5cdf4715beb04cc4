#include "runtime/engine/frame.h"

#include <algorithm>

#include "runtime/engine/frame_plan.h"

namespace dstrain::engine {
namespace {

/// Turns a plan's interval indices into views of the blocks.
class Binder {
 public:
  Binder(const model::Model& model,
         const FramePlan& plan,
         model::BatchShape shape,
         Frame::Blocks blocks)
      : model_(model), plan_(plan), shape_(shape), blocks_(blocks) {}

  FrameCall bind(const FramePlan::Call& planned) const {
    const auto unit = static_cast<std::size_t>(planned.unit);
    const model::UnitSpec& spec = model_.units[unit]->spec();
    FrameCall call{.unit = planned.unit, .planned = plan_.units[unit].get(), .pass = planned.pass};
    for (std::size_t i = 0; i < planned.inputs.size(); ++i) {
      if (planned.inputs[i] < 0) {
        call.inputs.emplace_back();
        continue;
      }
      const model::ActivationSpec& activation = plan_.activations.at(spec.reads[i]);
      call.inputs.push_back(view(planned.inputs[i], activation));
      if (planned.pass == Pass::forward) continue;
      call.input_gradients.push_back(
          {view(planned.input_gradients[i], activation), planned.input_gradient_accumulates[i]});
    }
    for (std::size_t i = 0; i < spec.writes.size(); ++i) {
      const model::ActivationSpec& activation = spec.writes[i];
      if (!planned.outputs.empty()) call.outputs.push_back(view(planned.outputs[i], activation));
      if (planned.pass == Pass::forward) continue;
      call.output_gradients.push_back(view(planned.output_gradients[i], activation));
    }
    call.recompute = planned.pass == Pass::backward && !planned.outputs.empty();
    call.saved = bytes(planned.saved);
    call.workspace = bytes(planned.workspace);
    for (const FramePlan::Copy& copy : planned.fetches) {
      call.fetches.push_back({host_bytes(copy.host), bytes(copy.device)});
    }
    for (const FramePlan::Copy& copy : planned.stores) {
      call.stores.push_back({bytes(copy.device), host_bytes(copy.host)});
    }
    return call;
  }

 private:
  [[nodiscard]] TensorView bytes(int index) const {
    if (index < 0) return {};
    const Interval& interval = plan_.intervals[static_cast<std::size_t>(index)];
    return blocks_.device.part(interval.offset, {interval.bytes});
  }
  [[nodiscard]] HostView host_bytes(int index) const {
    const Interval& interval = plan_.host_intervals[static_cast<std::size_t>(index)];
    return blocks_.host.part(interval.offset, {interval.bytes});
  }
  [[nodiscard]] TensorView view(int index, const model::ActivationSpec& activation) const {
    const Shape shape{shape_.sequences, shape_.on(activation.axis).tokens, activation.features};
    if (index < 0) return {activation.dtype, shape};
    return bytes(index).cut(0, activation.dtype, shape);
  }

  const model::Model& model_;
  const FramePlan& plan_;
  model::BatchShape shape_;
  Frame::Blocks blocks_;
};

void check_room(Bytes bytes, const TensorView& block) {
  const Bytes room = block.empty() ? 0 : block.bytes();
  DSTRAIN_CHECK(bytes <= room, "{} bytes in a block of {}", bytes, room);
}

}  // namespace

Schedule training_schedule(const model::Model& model) {
  const int units = static_cast<int>(model.units.size());
  Schedule schedule;
  for (int unit = 0; unit + 1 < units; ++unit) schedule.push_back({unit, Pass::forward});
  for (int unit = units - 1; unit >= 0; --unit) schedule.push_back({unit, Pass::backward});
  return schedule;
}

Schedule inference_schedule(const model::Model& model, model::BatchShape shape) {
  Schedule schedule;
  for (std::size_t unit = 0; unit < model.units.size(); ++unit) {
    const auto& writes = model.units[unit]->spec().writes;
    const auto has_rows = [shape](const model::ActivationSpec& activation) {
      return shape.on(activation.axis).rows() > 0;
    };
    if (!writes.empty() && std::ranges::none_of(writes, has_rows)) continue;
    schedule.push_back({static_cast<int>(unit), Pass::forward});
  }
  return schedule;
}

FrameBytes Frame::bytes(const model::Model& model, Options options) {
  return plan_frame(model, options).bytes;
}

Frame::Frame(const model::Model& model, Options options, Blocks blocks)
    : Frame(model,
            std::make_shared<const FramePlan>(plan_frame(model, options)),
            options.shape,
            blocks) {}

Frame::Frame(const model::Model& model,
             std::shared_ptr<const FramePlan> plan,
             model::BatchShape shape,
             Blocks blocks)
    : plan_(std::move(plan)) {
  check_room(plan_->bytes.device, blocks.device);
  check_room(plan_->bytes.host, blocks.host);
  const Binder binder(model, *plan_, shape, blocks);
  for (const FramePlan::Call& call : plan_->calls) calls_.push_back(binder.bind(call));
}

}  // namespace dstrain::engine
