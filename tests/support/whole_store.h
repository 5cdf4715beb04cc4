#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/typed_index.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/model/parameter_source.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/square_sum.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::test {

/// All parameters of a model without tiles, whole.
class WholeStore final : public engine::ParameterStore {
 public:
  WholeStore(const model::Model& model, float value) {
    std::vector<std::string> names;
    for (const model::ParameterSpec& spec : model.parameters()) {
      names.push_back(spec.name);
      shapes_.push_back(spec.shape);
      values_.emplace_back(static_cast<std::size_t>(spec.shape.numel()), value);
      gradients_.emplace_back(values_.back().size());
    }
    for (const auto& unit : model.units) {
      std::vector<TensorView>& views = views_.emplace_back();
      std::vector<model::GradientTarget>& targets = targets_.emplace_back();
      const auto add = [&](const std::string& name) {
        const auto index = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
        views.push_back(HostView(values_[index], shapes_[index]));
        targets.push_back({HostView(gradients_[index], shapes_[index])});
      };
      for (const model::ParameterSpec& spec : unit->spec().parameters) add(spec.name);
      for (const std::string& name : unit->spec().borrowed) add(name);
    }
  }

  /// Takes the values of `source` instead.
  void read(const model::Model& model, const model::ParameterSource& source) {
    std::size_t index = 0;
    for (const model::ParameterSpec& spec : model.parameters()) {
      source.read(spec, 0, values_[index++]);
    }
  }

  /// Lends them from `memory` from now on.
  void move_to(MemoryResource& memory, StreamView stream) {
    for (std::vector<TensorView>& unit : views_) {
      for (TensorView& view : unit) {
        const TensorView source = view;
        const Buffer& target = moved_.emplace_back(source.bytes(), memory, stream);
        view = target.block().cut(0, DType::f32, source.shape());
        ops::convert(source, view, stream);
      }
    }
    stream.synchronize();
  }

  double norm = 1;  ///< of the gradients of every step
  std::vector<optim::StepScalars> begun;
  std::vector<ops::StepDecision> steps;

  void load(const engine::StateSources& /*sources*/, StreamView /*stream*/) override {}
  [[nodiscard]] std::vector<engine::SavedState> saved_states() const override { return {}; }
  [[nodiscard]] std::vector<engine::ParameterSlice> saved_slices(int /*rank*/) const override {
    return {};
  }
  void copy_saved(engine::SaveTargetOf /*target_of*/) override {}
  void expect(std::span<const model::PartId> /*parts*/, std::int64_t /*rounds*/) override {}
  std::span<const TensorView> acquire(model::PartId part, StreamView /*stream*/) override {
    return views_[part];
  }
  void release(model::PartId /*part*/, StreamView /*stream*/) override {}
  std::span<const rules::ScalarValues> begin_step(const optim::StepScalars& scalars) override {
    begun.push_back(scalars);
    return {};
  }
  void begin(engine::MicroStep /*micro_step*/) override {}
  std::span<const model::GradientTarget> gradients(model::PartId part,
                                                   StreamView /*stream*/) override {
    return targets_[part];
  }
  void reduce(model::PartId /*part*/, StreamView /*stream*/) override {}
  void gather_totals(TensorView own, TensorView totals, StreamView stream) override {
    ExactSum squares;
    squares.add(norm * norm);
    ops::convert(ops::view_of(squares), own.part(0, {ExactSum::numel}), stream);
    ops::convert(own, totals.reshaped(own.shape()), stream);
  }
  void step(const optim::StepTensors& step, StreamView stream) override {
    ops::convert(step.decision, ops::view_of(steps.emplace_back()), stream);
  }
  std::optional<std::string> last_not_finite(TensorView /*sum*/) override { return std::nullopt; }

 private:
  std::vector<Shape> shapes_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<float>> gradients_;
  std::vector<Buffer> moved_;
  // By unit, none of which has tiles.
  TypedVector<model::PartId, std::vector<TensorView>> views_;
  TypedVector<model::PartId, std::vector<model::GradientTarget>> targets_;
};

}  // namespace dstrain::test
