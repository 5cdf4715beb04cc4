#include "runtime/model/unit_plan.h"

#include <algorithm>
#include <utility>

#include "runtime/tensor/interval_plan.h"

namespace dstrain::model {
namespace {

constexpr int none = LayerUse::none;

/// The state of a value while its unit is planned.
struct ValueState {
  int buffer = none;           ///< that holds it
  int reads_left = 0;          ///< by backward, rebuilds included
  int gradient = none;         ///< buffer of the gradient so far
  int contributions_left = 0;  ///< readers whose backward has not run yet
  bool needed = false;         ///< by backward
  bool rebuilt = false;        ///< for backward
};

class Planner {
 public:
  explicit Planner(const UnitRecord& record)
      : record_(record), states_(record.values.size()), kept_(record.layers.size()) {}

  UnitPlan run() {
    find_needs();
    choose_buffers();
    plan_forward();
    plan_.forward_steps = now();
    if (!in_one_go()) forget_rebuilt();
    plan_backward();
    return std::move(plan_);
  }

 private:
  using Kind = UnitBuffer::Kind;

  [[nodiscard]] bool in_one_go() const { return record_.spec.loss.has_value(); }
  [[nodiscard]] int layers() const { return static_cast<int>(record_.layers.size()); }
  [[nodiscard]] int now() const { return static_cast<int>(plan_.steps.size()); }
  [[nodiscard]] const Layer& layer(int index) const { return *record_.at(index).layer; }
  ValueState& state(int value) { return states_[static_cast<std::size_t>(value)]; }
  UnitBuffer& buffer(int index) { return plan_.buffers[static_cast<std::size_t>(index)]; }

  int add_buffer(Kind kind, UnitBuffer::Content content, int owner, int index = 0) {
    plan_.buffers.push_back({kind, content, owner, index, now(), now()});
    shared_.push_back(false);
    return static_cast<int>(plan_.buffers.size()) - 1;
  }
  int add_value_buffer(int value) {
    return add_buffer(Kind::workspace, UnitBuffer::Content::value, value);
  }
  /// Marks a buffer as needed by the current step.
  int touch(int index) {
    if (index != none) buffer(index).last = now();
    return index;
  }

  /// Finds the values that backward reads, and how often.
  void find_needs() {
    for (int at = layers() - 1; at >= 0; --at) {
      const RecordedLayer& recorded = record_.at(at);
      const std::vector<InputUse> uses = recorded.layer->inputs();
      DSTRAIN_CHECK(uses.size() == recorded.inputs.size(), "{} inputs of layer {}",
                    recorded.inputs.size(), at);
      const bool rebuilds = rebuilds_output(recorded);
      for (std::size_t i = 0; i < uses.size(); ++i) {
        ValueState& input = state(recorded.inputs[i]);
        ++input.contributions_left;
        input.reads_left += (uses[i].read_by_backward ? 1 : 0) + (rebuilds ? 1 : 0);
        input.needed = input.reads_left > 0 || input.needed;
      }
    }
  }

  /// Call in reverse order, so that all readers of the output are known.
  bool rebuilds_output(const RecordedLayer& recorded) {
    if (recorded.output == none) return false;
    ValueState& output = state(recorded.output);
    output.needed = output.needed || recorded.layer->backward_reads_output();
    DSTRAIN_CHECK(output.contributions_left > 0 || record_.value(recorded.output).output != none,
                  "nobody reads value {}", recorded.output);
    output.rebuilt = output.needed && recorded.layer->rebuilds() &&
                     !recorded.layer->backward_reads_output() && !in_one_go();
    return output.rebuilt;
  }

  /// Chooses the buffer of each value in forward. Values come after those that they are made from,
  /// so one that already has a buffer shares that of its reader's output.
  void choose_buffers() {
    for (int value = static_cast<int>(states_.size()) - 1; value >= 0; --value) {
      if (state(value).buffer == none) state(value).buffer = buffer_of(value);
      share_buffer(value);
    }
  }

  int buffer_of(int value) {
    const RecordedValue& recorded = record_.value(value);
    if (recorded.input != none) {
      return add_buffer(Kind::input, UnitBuffer::Content::value, value, recorded.input);
    }
    if (recorded.output != none) {
      DSTRAIN_CHECK(!state(value).needed || state(value).rebuilt,
                    "backward needs an output of unit {}", record_.spec.name);
      return add_buffer(Kind::output, UnitBuffer::Content::value, value, recorded.output);
    }
    const bool saved = state(value).needed && !state(value).rebuilt && !in_one_go();
    const int made =
        add_buffer(saved ? Kind::saved : Kind::workspace, UnitBuffer::Content::value, value);
    buffer(made).first = none;  // until its layer runs
    return made;
  }

  /// Shares the buffer of a value with an input of its layer that it may replace.
  void share_buffer(int value) {
    const int producer = record_.value(value).producer;
    if (producer == none) return;
    const std::vector<InputUse> uses = layer(producer).inputs();
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const int input = record_.at(producer).inputs[i];
      const RecordedValue& recorded = record_.value(input);
      if (!uses[i].replaced_by_output || state(input).needed || recorded.input != none ||
          recorded.output != none || state(input).contributions_left != 1) {
        continue;
      }
      state(input).buffer = state(value).buffer;
      return;
    }
  }

  /// Returns the fusion of the layers at `at` and `at` + 1 if one reads the other's output.
  [[nodiscard]] FusedPair pair_at(int at) const {
    if (at < 0 || at + 1 >= layers()) return {};
    const std::vector<int>& inputs = record_.at(at + 1).inputs;
    if (std::ranges::find(inputs, record_.at(at).output) == inputs.end()) return {};
    return find_pair(layer(at), layer(at + 1));
  }

  void plan_forward() {
    for (int at = 0; at < layers();) {
      const FusedPair::Run pair = pair_at(at).forward;
      Step step{.kind = Step::Kind::forward, .pair = pair};
      const int end = at + (pair != nullptr ? 2 : 1);
      for (; at < end; ++at) step.layers.push_back(use_forward(at));
      plan_.steps.push_back(std::move(step));
    }
  }

  LayerUse use_forward(int at) {
    const RecordedLayer& recorded = record_.at(at);
    LayerUse use{.layer = at};
    for (const int input : recorded.inputs) use.inputs.push_back(touch(state(input).buffer));
    if (recorded.output != none) {
      use.output = state(recorded.output).buffer;
      UnitBuffer& output = buffer(use.output);
      if (output.first == none) output.first = now();
      touch(use.output);
    }
    const std::size_t kept = recorded.layer->kept({1, 1}).size();
    for (std::size_t i = 0; i < kept; ++i) {
      use.kept.push_back(add_buffer(in_one_go() ? Kind::workspace : Kind::saved,
                                    UnitBuffer::Content::kept, at, static_cast<int>(i)));
    }
    kept_[static_cast<std::size_t>(at)] = use.kept;
    use.workspace = add_buffer(Kind::workspace, UnitBuffer::Content::forward_workspace, at);
    return use;
  }

  /// Forgets the values that were in forward's workspace.
  void forget_rebuilt() {
    for (ValueState& value : states_) {
      if (value.buffer != none && buffer(value.buffer).kind == Kind::workspace) value.buffer = none;
      if (value.buffer != none && buffer(value.buffer).kind == Kind::output) value.buffer = none;
    }
  }

  void plan_backward() {
    for (int value = 0; value < static_cast<int>(states_.size()); ++value) {
      const int output = record_.value(value).output;
      if (output == none) continue;
      state(value).gradient =
          add_buffer(Kind::output_gradient, UnitBuffer::Content::value, value, output);
      shared_[static_cast<std::size_t>(state(value).gradient)] = true;
    }
    for (int at = layers() - 1; at >= 0;) {
      const FusedPair::Run pair = backward_pair(at - 1);
      const int begin = pair != nullptr ? at - 1 : at;
      between_ = pair != nullptr ? record_.at(begin).output : none;
      plan_backward_step(begin, at, pair);
      at = begin - 1;
    }
    store_input_gradients();
  }

  /// A pair passes on the gradient of the value between its layers at once: if other layers read
  /// that value too, the second layer must be able to add theirs.
  FusedPair::Run backward_pair(int at) {
    const FusedPair pair = pair_at(at);
    if (pair.backward == nullptr) return nullptr;
    const bool adds = std::ranges::all_of(layer(at + 1).inputs(), &InputUse::gradient_adds);
    return adds || state(record_.at(at).output).gradient == none ? pair.backward : nullptr;
  }

  void plan_backward_step(int begin, int end, FusedPair::Run pair) {
    for (int at = end; at >= begin; --at) rebuild_inputs(at);
    if (between_ != none && state(between_).rebuilt && state(between_).buffer == none) {
      for (const int input : record_.at(begin).inputs) --state(input).reads_left;
      state(between_).buffer = add_value_buffer(between_);
    }
    Step step{.kind = Step::Kind::backward, .pair = pair};
    std::vector<Step> behind;
    for (int at = end; at >= begin; --at) {
      step.layers.insert(step.layers.begin(), use_backward(at, behind));
    }
    plan_.steps.push_back(std::move(step));
    for (Step& add : behind) {
      touch(add.source);
      touch(add.target);
      plan_.steps.push_back(std::move(add));
    }
  }

  /// Rebuilds the missing values that the backward of a layer reads, except the one that its pair
  /// rebuilds.
  void rebuild_inputs(int at) {
    const std::vector<InputUse> uses = layer(at).inputs();
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const int input = record_.at(at).inputs[i];
      if (uses[i].read_by_backward && input != between_) rebuild(input);
    }
  }

  void rebuild(int value) {
    if (state(value).buffer != none) return;
    const int producer = record_.value(value).producer;
    DSTRAIN_CHECK(state(value).rebuilt, "value {} is lost", value);
    for (const int input : record_.at(producer).inputs) rebuild(input);
    LayerUse use{.layer = producer, .kept = kept_[static_cast<std::size_t>(producer)]};
    for (const int input : record_.at(producer).inputs) use.inputs.push_back(read(input));
    for (const int kept : use.kept) touch(kept);
    state(value).buffer = use.output = add_value_buffer(value);
    plan_.steps.push_back({.kind = Step::Kind::rebuild, .layers = {std::move(use)}});
  }

  /// Counts one read by backward.
  int read(int value) {
    --state(value).reads_left;
    return touch(state(value).buffer);
  }

  LayerUse use_backward(int at, std::vector<Step>& behind) {
    const RecordedLayer& recorded = record_.at(at);
    const std::vector<InputUse> uses = recorded.layer->inputs();
    LayerUse use{.layer = at, .kept = kept_[static_cast<std::size_t>(at)]};
    for (const int kept : use.kept) touch(kept);
    const bool rebuilds = recorded.output == between_ && between_ != none;
    if (recorded.layer->backward_reads_output() || rebuilds) {
      use.output = touch(state(recorded.output).buffer);
    }
    for (std::size_t i = 0; i < uses.size(); ++i) {
      use.inputs.push_back(uses[i].read_by_backward ? read(recorded.inputs[i]) : none);
    }
    if (recorded.output != none) {
      use.output_gradient = touch(state(recorded.output).gradient);
      DSTRAIN_CHECK(use.output_gradient != none, "no gradient of value {}", recorded.output);
    }
    use.workspace = add_buffer(Kind::workspace, UnitBuffer::Content::backward_workspace, at);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      use.input_gradients.push_back(contribute(at, i, use, behind));
    }
    return use;
  }

  /// Plans the target of the gradient of layer `at` for its input `i`.
  LayerUse::Gradient contribute(int at,
                                std::size_t i,
                                const LayerUse& use,
                                std::vector<Step>& behind) {
    const int value = record_.at(at).inputs[i];
    const InputUse traits = layer(at).inputs()[i];
    ValueState& input = state(value);
    --input.contributions_left;
    if (traits.gradient_is_outputs) {
      pass(value, use.output_gradient, behind);
      return {};
    }
    if (traits.gradient_adds) {
      const int residual = touch(input.gradient);
      input.gradient = touch(sum_buffer(value));
      return {input.gradient, residual};
    }
    const int written = touch(gradient_buffer(value, traits, use));
    join(value, written, behind);
    return {written, none};
  }

  [[nodiscard]] bool is_own(int index) {
    return index != none && buffer(index).kind == Kind::workspace &&
           !shared_[static_cast<std::size_t>(index)];
  }

  /// Returns the buffer for a gradient to which all earlier ones are added.
  int sum_buffer(int value) {
    const int input = record_.value(value).input;
    if (state(value).contributions_left == 0 && input != none) {
      return add_buffer(Kind::input_gradient, UnitBuffer::Content::value, value, input);
    }
    return is_own(state(value).gradient) ? state(value).gradient : add_value_buffer(value);
  }

  int gradient_buffer(int value, const InputUse& traits, const LayerUse& use) {
    const bool unread =
        value != between_ && is_own(state(value).buffer) && state(value).reads_left == 0;
    if (traits.gradient_over_input && unread) return std::exchange(state(value).buffer, none);
    if (traits.gradient_over_output && is_own(use.output_gradient)) return use.output_gradient;
    return add_value_buffer(value);
  }

  /// Makes `gradient`, of another value, also the gradient of `value`.
  void pass(int value, int gradient, std::vector<Step>& behind) {
    shared_[static_cast<std::size_t>(gradient)] = true;
    if (state(value).gradient == none) {
      state(value).gradient = gradient;
    } else {
      add(value, gradient, behind);
    }
  }

  /// Adds the earlier gradient of a value to the one in `written`.
  void join(int value, int written, std::vector<Step>& behind) {
    const int before = std::exchange(state(value).gradient, written);
    if (before != none) add(value, before, behind);
  }

  void add(int value, int addend, std::vector<Step>& behind) {
    int& sum = state(value).gradient;
    if (!is_own(sum)) {
      const int own = add_value_buffer(value);
      behind.push_back({.kind = Step::Kind::store, .source = sum, .target = own});
      sum = own;
    }
    behind.push_back({.kind = Step::Kind::add, .source = addend, .target = sum});
  }

  /// Stores gradients of inputs that were not written directly to their targets.
  void store_input_gradients() {
    for (int value = 0; value < static_cast<int>(states_.size()); ++value) {
      const int input = record_.value(value).input;
      const int gradient = state(value).gradient;
      if (input == none || (gradient != none && buffer(gradient).kind == Kind::input_gradient)) {
        continue;
      }
      DSTRAIN_CHECK(gradient != none, "nothing comes of {}",
                    record_.spec.reads[static_cast<std::size_t>(input)]);
      const int target = add_buffer(Kind::input_gradient, UnitBuffer::Content::value, value, input);
      touch(gradient);
      plan_.steps.push_back({.kind = Step::Kind::store, .source = gradient, .target = target});
    }
  }

  const UnitRecord& record_;
  UnitPlan plan_;
  std::vector<ValueState> states_;
  std::vector<bool> shared_;            ///< by buffer: whether it is the gradient of several values
  std::vector<std::vector<int>> kept_;  ///< by layer: buffers
  int between_ = none;  ///< the value between the layers of the pair that is planned
};

Bytes bytes_of(const UnitRecord& record, const UnitBuffer& buffer, BatchShape shape) {
  const auto layer_shape = [&] {
    return record.shape_at(buffer.owner, shape);
  };
  switch (buffer.content) {
    case UnitBuffer::Content::forward_workspace:
      if (layer_shape().rows() == 0) return 0;  // it does not run
      return record.at(buffer.owner).layer->forward_workspace(layer_shape());
    case UnitBuffer::Content::backward_workspace:
      if (layer_shape().rows() == 0) return 0;
      return record.at(buffer.owner).layer->backward_workspace(layer_shape());
    case UnitBuffer::Content::kept:
      return shape_of(record, buffer, shape).numel() * size_of(DType::f32);
    case UnitBuffer::Content::value:
      return shape_of(record, buffer, shape).numel() * size_of(record.value(buffer.owner).dtype);
  }
  fail(ErrorCode::internal, "no such content");
}

}  // namespace

UnitPlan plan_unit(const UnitRecord& record) {
  return Planner(record).run();
}

Shape shape_of(const UnitRecord& record, const UnitBuffer& buffer, BatchShape shape) {
  switch (buffer.content) {
    case UnitBuffer::Content::value: {
      const RecordedValue& value = record.value(buffer.owner);
      return {shape.sequences, shape.on(value.axis).tokens, value.features};
    }
    case UnitBuffer::Content::kept:
      return record.at(buffer.owner)
          .layer->kept(
              record.shape_at(buffer.owner, shape))[static_cast<std::size_t>(buffer.index)];
    default:
      return {bytes_of(record, buffer, shape)};
  }
}

Placement place_buffers(const UnitRecord& record, const UnitPlan& plan, BatchShape shape) {
  Placement placement{.offsets = std::vector<Bytes>(plan.buffers.size()), .memory = {}};
  const auto place_steps = [&](int first, int last) {
    std::vector<Interval> intervals(plan.buffers.size());
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const UnitBuffer& buffer = plan.buffers[i];
      if (buffer.kind != UnitBuffer::Kind::workspace || buffer.first < first ||
          buffer.first >= last)
        continue;
      intervals[i] = {bytes_of(record, buffer, shape), buffer.first, buffer.last};
    }
    const Bytes bytes = place_intervals(intervals);
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      if (intervals[i].bytes > 0) placement.offsets[i] = intervals[i].offset;
    }
    return bytes;
  };
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind != UnitBuffer::Kind::saved) continue;
    placement.offsets[i] = placement.memory.saved;
    placement.memory.saved += round_up(bytes_of(record, plan.buffers[i], shape), 64);
  }
  const int steps = static_cast<int>(plan.steps.size());
  const int forward = record.spec.loss ? steps : plan.forward_steps;
  placement.memory.forward_workspace = place_steps(0, forward);
  placement.memory.backward_workspace =
      record.spec.loss ? placement.memory.forward_workspace : place_steps(forward, steps);
  return placement;
}

}  // namespace dstrain::model
