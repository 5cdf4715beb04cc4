#include "runtime/model/step_runner.h"

#include "runtime/ops/add.h"
#include "runtime/ops/checks.h"
#include "runtime/ops/copy_rows.h"

namespace dstrain::model {
TensorView StepRunner::view(int index) const {
  if (index == LayerUse::none) return {};
  const UnitBuffer& buffer = unit_.plan.buffers[static_cast<std::size_t>(index)];
  const auto position = static_cast<std::size_t>(buffer.index);
  switch (buffer.kind) {
    case UnitBuffer::Kind::input:
      return call_.inputs[position];
    case UnitBuffer::Kind::output:
      return call_.outputs[position];
    case UnitBuffer::Kind::input_gradient:
      return call_.input_gradients[position].values;
    case UnitBuffer::Kind::output_gradient:
      return call_.output_gradients[position];
    case UnitBuffer::Kind::saved:
    case UnitBuffer::Kind::workspace:
      break;
  }
  const TensorView& block = buffer.kind == UnitBuffer::Kind::saved ? call_.saved : call_.workspace;
  const Shape shape = shape_of(unit_.record, buffer, call_.shape);
  if (shape.numel() == 0) return {};
  const DType dtype = buffer.content == UnitBuffer::Content::value
                          ? unit_.record.value(buffer.owner).dtype
                      : buffer.content == UnitBuffer::Content::kept ? DType::f32
                                                                    : DType::u8;
  return block.cut(unit_.placement.offsets[static_cast<std::size_t>(index)], dtype, shape);
}

bool StepRunner::accumulates(int index) const {
  const UnitBuffer& buffer = unit_.plan.buffers[static_cast<std::size_t>(index)];
  return buffer.kind == UnitBuffer::Kind::input_gradient &&
         call_.input_gradients[static_cast<std::size_t>(buffer.index)].accumulate;
}

InputGradient StepRunner::gradient_of(const LayerUse::Gradient& gradient) const {
  if (gradient.values == LayerUse::none) return {};
  return {view(gradient.values), view(gradient.residual), accumulates(gradient.values)};
}

LayerCall StepRunner::call_of(const LayerUse& use) const {
  LayerCall call{.unit = call_,
                 .shape = unit_.record.shape_at(use.layer, call_.shape),
                 .spec = unit_.record.spec,
                 .stream = stream_};
  for (const int input : use.inputs) call.inputs.push_back(view(input));
  call.output = view(use.output);
  for (const int kept : use.kept) call.kept.push_back(view(kept));
  if (call_.cache != nullptr) call.cached = unit_.record.cached_of(use.layer, *call_.cache);
  call.workspace = view(use.workspace);
  call.output_gradient = view(use.output_gradient);
  for (const LayerUse::Gradient& gradient : use.input_gradients) {
    call.input_gradients.push_back(gradient_of(gradient));
  }
  return call;
}

void StepRunner::run_layers(const Step& step) const {
  const Layer& first = *unit_.record.at(step.layers.front().layer).layer;
  const LayerCall call = call_of(step.layers.front());
  if (call.shape.rows() == 0) return;  // what it computes of a source is in the cache
  if (step.pair != nullptr) {
    const Layer& second = *unit_.record.at(step.layers.back().layer).layer;
    const LayerCall second_call = call_of(step.layers.back());
    step.pair({first, call}, {second, second_call});
  } else if (step.kind == Step::Kind::forward) {
    first.forward(call);
  } else if (step.kind == Step::Kind::rebuild) {
    first.rebuild(call);
  } else {
    first.backward(call);
  }
}

void StepRunner::add(const Step& step) const {
  const TensorView source = view(step.source);
  const TensorView target = view(step.target);
  if (step.kind == Step::Kind::add || accumulates(step.target)) {
    ops::add(source.reshaped({source.numel()}), target.reshaped({target.numel()}), stream_);
  } else {
    ops::copy_rows(ops::as_matrix(source), ops::as_matrix(target), stream_);
  }
}

void StepRunner::run(const Step& step) const {
  if (step.layers.empty()) {
    add(step);
  } else {
    run_layers(step);
  }
}

}  // namespace dstrain::model
