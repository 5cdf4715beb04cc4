#include "runtime/model/unit_plan.h"

#include <algorithm>
#include <utility>

#include "runtime/tensor/interval_plan.h"

namespace dstrain::model {
namespace {

constexpr int none = LayerUse::none;

/// What is known of a value while its unit is planned.
struct ValueState {
  int slot = none;             ///< where it lies
  int reads_left = 0;          ///< of backward, rebuilds included
  int gradient = none;         ///< slot of the gradient so far
  int contributions_left = 0;  ///< readers whose backward is still to come
  bool needed = false;         ///< by backward
  bool rebuilt = false;        ///< for that
};

class Planner {
 public:
  explicit Planner(const UnitRecord& record)
      : record_(record), states_(record.values.size()), kept_(record.layers.size()) {}

  UnitPlan run() {
    find_needs();
    find_places();
    plan_forward();
    plan_.forward_steps = now();
    if (!in_one_go()) forget_rebuilt();
    plan_backward();
    return std::move(plan_);
  }

 private:
  using Place = Slot::Place;

  [[nodiscard]] bool in_one_go() const { return record_.spec.computes_loss; }
  [[nodiscard]] int layers() const { return static_cast<int>(record_.layers.size()); }
  [[nodiscard]] int now() const { return static_cast<int>(plan_.steps.size()); }
  [[nodiscard]] const Layer& layer(int index) const { return *record_.at(index).layer; }
  ValueState& state(int value) { return states_[static_cast<std::size_t>(value)]; }
  Slot& slot(int index) { return plan_.slots[static_cast<std::size_t>(index)]; }

  int add_slot(Place place, Slot::Content content, int owner, int index = 0) {
    plan_.slots.push_back({place, content, owner, index, now(), now()});
    shared_.push_back(false);
    return static_cast<int>(plan_.slots.size()) - 1;
  }
  int add_value_slot(int value) { return add_slot(Place::workspace, Slot::Content::value, value); }
  /// Marks a slot as needed by the step that is being made.
  int touch(int index) {
    if (index != none) slot(index).last = now();
    return index;
  }

  /// Which values backward reads, and how often.
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

  /// Called in reverse order: all readers of the output are known.
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

  /// Where each value lies in forward. Values come after those that they are made of, so one that
  /// has a place already has that of its reader's output.
  void find_places() {
    for (int value = static_cast<int>(states_.size()) - 1; value >= 0; --value) {
      if (state(value).slot == none) state(value).slot = place_of(value);
      share_place(value);
    }
  }

  int place_of(int value) {
    const RecordedValue& recorded = record_.value(value);
    if (recorded.input != none) {
      return add_slot(Place::input, Slot::Content::value, value, recorded.input);
    }
    if (recorded.output != none) {
      DSTRAIN_CHECK(!state(value).needed || state(value).rebuilt,
                    "backward needs an output of unit {}", record_.spec.name);
      return add_slot(Place::output, Slot::Content::value, value, recorded.output);
    }
    const bool saved = state(value).needed && !state(value).rebuilt && !in_one_go();
    const int made = add_slot(saved ? Place::saved : Place::workspace, Slot::Content::value, value);
    slot(made).first = none;  // until its layer comes
    return made;
  }

  /// Gives the place of a value to an input of its layer that it may replace.
  void share_place(int value) {
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
      state(input).slot = state(value).slot;
      return;
    }
  }

  /// Whether the layers at `at` and behind it are adjacent in the flow of values.
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
    for (const int input : recorded.inputs) use.inputs.push_back(touch(state(input).slot));
    if (recorded.output != none) {
      use.output = state(recorded.output).slot;
      Slot& output = slot(use.output);
      if (output.first == none) output.first = now();
      touch(use.output);
    }
    const std::size_t kept = recorded.layer->kept({1, 1}).size();
    for (std::size_t i = 0; i < kept; ++i) {
      use.kept.push_back(add_slot(in_one_go() ? Place::workspace : Place::saved,
                                  Slot::Content::kept, at, static_cast<int>(i)));
    }
    kept_[static_cast<std::size_t>(at)] = use.kept;
    use.workspace = add_slot(Place::workspace, Slot::Content::forward_workspace, at);
    return use;
  }

  /// What forward had in its workspace is gone.
  void forget_rebuilt() {
    for (ValueState& value : states_) {
      if (value.slot != none && slot(value.slot).place == Place::workspace) value.slot = none;
      if (value.slot != none && slot(value.slot).place == Place::output) value.slot = none;
    }
  }

  void plan_backward() {
    for (int value = 0; value < static_cast<int>(states_.size()); ++value) {
      const int output = record_.value(value).output;
      if (output == none) continue;
      state(value).gradient = add_slot(Place::output_gradient, Slot::Content::value, value, output);
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

  /// A pair hands over the gradient of the value between its layers at once: where others read
  /// that value too, the second layer must be able to add theirs.
  FusedPair::Run backward_pair(int at) {
    const FusedPair pair = pair_at(at);
    if (pair.backward == nullptr) return nullptr;
    const bool adds = std::ranges::all_of(layer(at + 1).inputs(), &InputUse::gradient_adds);
    return adds || state(record_.at(at).output).gradient == none ? pair.backward : nullptr;
  }

  void plan_backward_step(int begin, int end, FusedPair::Run pair) {
    for (int at = end; at >= begin; --at) rebuild_inputs(at);
    if (between_ != none && state(between_).rebuilt && state(between_).slot == none) {
      for (const int input : record_.at(begin).inputs) --state(input).reads_left;
      state(between_).slot = add_value_slot(between_);
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

  /// Rebuilds what the backward of a layer reads and is not there, but for what its pair rebuilds.
  void rebuild_inputs(int at) {
    const std::vector<InputUse> uses = layer(at).inputs();
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const int input = record_.at(at).inputs[i];
      if (uses[i].read_by_backward && input != between_) rebuild(input);
    }
  }

  void rebuild(int value) {
    if (state(value).slot != none) return;
    const int producer = record_.value(value).producer;
    DSTRAIN_CHECK(state(value).rebuilt, "value {} is lost", value);
    for (const int input : record_.at(producer).inputs) rebuild(input);
    LayerUse use{.layer = producer, .kept = kept_[static_cast<std::size_t>(producer)]};
    for (const int input : record_.at(producer).inputs) use.inputs.push_back(read(input));
    for (const int kept : use.kept) touch(kept);
    state(value).slot = use.output = add_value_slot(value);
    plan_.steps.push_back({.kind = Step::Kind::rebuild, .layers = {std::move(use)}});
  }

  /// One of the reads of backward.
  int read(int value) {
    --state(value).reads_left;
    return touch(state(value).slot);
  }

  LayerUse use_backward(int at, std::vector<Step>& behind) {
    const RecordedLayer& recorded = record_.at(at);
    const std::vector<InputUse> uses = recorded.layer->inputs();
    LayerUse use{.layer = at, .kept = kept_[static_cast<std::size_t>(at)]};
    for (const int kept : use.kept) touch(kept);
    const bool rebuilds = recorded.output == between_ && between_ != none;
    if (recorded.layer->backward_reads_output() || rebuilds) {
      use.output = touch(state(recorded.output).slot);
    }
    for (std::size_t i = 0; i < uses.size(); ++i) {
      use.inputs.push_back(uses[i].read_by_backward ? read(recorded.inputs[i]) : none);
    }
    if (recorded.output != none) {
      use.output_gradient = touch(state(recorded.output).gradient);
      DSTRAIN_CHECK(use.output_gradient != none, "no gradient of value {}", recorded.output);
    }
    use.workspace = add_slot(Place::workspace, Slot::Content::backward_workspace, at);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      use.input_gradients.push_back(contribute(at, i, use, behind));
    }
    return use;
  }

  /// Plans where the gradient goes that layer `at` has for its input `i`.
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
      input.gradient = touch(place_of_sum(value));
      return {input.gradient, residual};
    }
    const int written = touch(place_of_gradient(value, traits, use));
    join(value, written, behind);
    return {written, none};
  }

  [[nodiscard]] bool is_own(int index) {
    return index != none && slot(index).place == Place::workspace &&
           !shared_[static_cast<std::size_t>(index)];
  }

  /// Of a gradient to which all that came before is added.
  int place_of_sum(int value) {
    const int input = record_.value(value).input;
    if (state(value).contributions_left == 0 && input != none) {
      return add_slot(Place::input_gradient, Slot::Content::value, value, input);
    }
    return is_own(state(value).gradient) ? state(value).gradient : add_value_slot(value);
  }

  int place_of_gradient(int value, const InputUse& traits, const LayerUse& use) {
    const bool unread =
        value != between_ && is_own(state(value).slot) && state(value).reads_left == 0;
    if (traits.gradient_over_input && unread) return std::exchange(state(value).slot, none);
    if (traits.gradient_over_output && is_own(use.output_gradient)) return use.output_gradient;
    return add_value_slot(value);
  }

  /// The gradient of a value is also that of `gradient`'s.
  void pass(int value, int gradient, std::vector<Step>& behind) {
    shared_[static_cast<std::size_t>(gradient)] = true;
    if (state(value).gradient == none) {
      state(value).gradient = gradient;
    } else {
      add(value, gradient, behind);
    }
  }

  /// A gradient in memory of its own comes to what there is.
  void join(int value, int written, std::vector<Step>& behind) {
    const int before = std::exchange(state(value).gradient, written);
    if (before != none) add(value, before, behind);
  }

  void add(int value, int addend, std::vector<Step>& behind) {
    int& sum = state(value).gradient;
    if (!is_own(sum)) {
      const int own = add_value_slot(value);
      behind.push_back({.kind = Step::Kind::store, .source = sum, .target = own});
      sum = own;
    }
    behind.push_back({.kind = Step::Kind::add, .source = addend, .target = sum});
  }

  /// Of inputs whose gradients did not come to their places by themselves.
  void store_input_gradients() {
    for (int value = 0; value < static_cast<int>(states_.size()); ++value) {
      const int input = record_.value(value).input;
      const int gradient = state(value).gradient;
      if (input == none || (gradient != none && slot(gradient).place == Place::input_gradient)) {
        continue;
      }
      DSTRAIN_CHECK(gradient != none, "nothing comes of {}",
                    record_.spec.reads[static_cast<std::size_t>(input)]);
      const int target = add_slot(Place::input_gradient, Slot::Content::value, value, input);
      touch(gradient);
      plan_.steps.push_back({.kind = Step::Kind::store, .source = gradient, .target = target});
    }
  }

  const UnitRecord& record_;
  UnitPlan plan_;
  std::vector<ValueState> states_;
  std::vector<bool> shared_;            ///< by slot: it is the gradient of several values
  std::vector<std::vector<int>> kept_;  ///< by layer: slots
  int between_ = none;  ///< the value between the layers of the pair that is planned
};

Bytes bytes_of(const UnitRecord& record, const Slot& slot, BatchShape shape) {
  switch (slot.content) {
    case Slot::Content::forward_workspace:
      return record.at(slot.owner).layer->forward_workspace(record.shape_at(slot.owner, shape));
    case Slot::Content::backward_workspace:
      return record.at(slot.owner).layer->backward_workspace(record.shape_at(slot.owner, shape));
    case Slot::Content::kept:
      return shape_of(record, slot, shape).numel() * size_of(DType::f32);
    case Slot::Content::value:
      return shape_of(record, slot, shape).numel() * size_of(record.value(slot.owner).dtype);
  }
  fail(ErrorCode::internal, "no such content");
}

}  // namespace

UnitPlan plan_unit(const UnitRecord& record) {
  return Planner(record).run();
}

Shape shape_of(const UnitRecord& record, const Slot& slot, BatchShape shape) {
  switch (slot.content) {
    case Slot::Content::value: {
      const RecordedValue& value = record.value(slot.owner);
      return {shape.sequences, shape.on(value.axis).tokens, value.features};
    }
    case Slot::Content::kept:
      return record.at(slot.owner)
          .layer->kept(record.shape_at(slot.owner, shape))[static_cast<std::size_t>(slot.index)];
    default:
      return {bytes_of(record, slot, shape)};
  }
}

Placement place_slots(const UnitRecord& record, const UnitPlan& plan, BatchShape shape) {
  Placement placement{.offsets = std::vector<Bytes>(plan.slots.size()), .memory = {}};
  const auto place_steps = [&](int first, int last) {
    std::vector<Interval> intervals(plan.slots.size());
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const Slot& slot = plan.slots[i];
      if (slot.place != Slot::Place::workspace || slot.first < first || slot.first >= last)
        continue;
      intervals[i] = {bytes_of(record, slot, shape), slot.first, slot.last};
    }
    const Bytes bytes = place_intervals(intervals);
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      if (intervals[i].bytes > 0) placement.offsets[i] = intervals[i].offset;
    }
    return bytes;
  };
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    if (plan.slots[i].place != Slot::Place::saved) continue;
    placement.offsets[i] = placement.memory.saved;
    placement.memory.saved += round_up(bytes_of(record, plan.slots[i], shape), 64);
  }
  const int steps = static_cast<int>(plan.steps.size());
  const int forward = record.spec.computes_loss ? steps : plan.forward_steps;
  placement.memory.forward_workspace = place_steps(0, forward);
  placement.memory.backward_workspace =
      record.spec.computes_loss ? placement.memory.forward_workspace : place_steps(forward, steps);
  return placement;
}

}  // namespace dstrain::model
