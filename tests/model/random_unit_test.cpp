// Random compositions of all layers: their gradients, and the memory that they are planned to use.
#include "tests/model/random_unit.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "runtime/model/step_runner.h"
#include "tests/support/catch.h"
#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

/// A seed finds what it finds on every machine.
constexpr std::uint64_t seeds = 200;

using Tensors = std::map<std::string, std::vector<float>>;

/// Bytes of NaN from a 64-byte boundary on.
class Memory {
 public:
  explicit Memory(Bytes bytes) : bytes_(static_cast<std::size_t>(bytes) + 64) {
    start_ = bytes_.data();
    std::size_t space = bytes_.size();
    std::align(64, 1, start_, space);
    poison(0, bytes);
  }
  void poison(Bytes begin, Bytes end) {
    std::memset(static_cast<std::byte*>(start_) + begin, 0xff,
                static_cast<std::size_t>(end - begin));
  }
  [[nodiscard]] HostView view(Bytes bytes) const { return {start_, DType::u8, {bytes}}; }

 private:
  std::vector<std::byte> bytes_;
  void* start_ = nullptr;
};

/// One call of a random unit, with memory as it is planned and not a byte more.
class Call {
 public:
  enum class Spoil { nothing, dead };

  explicit Call(test::RandomUnit& random)
      : unit_(random.unit()),
        placement_(model::place_buffers(unit_.record(), unit_.steps(), random.shape())),
        saved_(placement_.memory.saved),
        workspace_(
            std::max(placement_.memory.forward_workspace, placement_.memory.backward_workspace)) {
    const model::BatchShape shape = random.shape();
    const model::UnitSpec& spec = unit_.spec();
    for (const model::ParameterSpec& parameter : spec.parameters) {
      parameter_views_.push_back(store(random, parameter.name, parameter.shape));
      parameter_targets_.push_back({gradient(parameter.name, parameter.shape)});
    }
    for (std::size_t i = 0; i < spec.reads.size(); ++i) {
      const auto& values = unit_.record().values;
      const auto value =
          std::ranges::find(values, static_cast<int>(i), &model::RecordedValue::input);
      const Shape whole{shape.sequences, shape.on(value->axis).tokens, value->features};
      inputs_.push_back(store(random, spec.reads[i], whole));
      input_targets_.push_back({gradient(spec.reads[i], whole)});
    }
    const Shape out{shape.sequences, shape.tokens, spec.writes[0].features};
    output = std::vector<float>(static_cast<std::size_t>(out.numel()));
    output_gradient = test::random_values(out.numel(), 99);
    outputs_ = {HostView(output, out)};
    output_gradients_ = {HostView(output_gradient, out)};
    call_.shape = shape;
    source_count_ = random.source_count();
    if (!source_count_.empty()) call_.source_count = HostView(source_count_, {shape.sequences});
    call_.parameters = parameter_views_;
    call_.inputs = inputs_;
    call_.outputs = outputs_;
    call_.saved = saved_.view(placement_.memory.saved);
    call_.dropout = random.dropout();
    call_.parameter_gradients = parameter_targets_;
    call_.output_gradients = output_gradients_;
    call_.input_gradients = input_targets_;
    tiles_.emplace(*this);
    call_.tiles = &*tiles_;
  }

  void run(Spoil spoil) {
    const model::UnitPlan& plan = unit_.steps();
    const auto forward = static_cast<std::size_t>(plan.forward_steps);
    call_.workspace = workspace_.view(placement_.memory.forward_workspace);
    run_steps(0, forward, spoil);
    workspace_.poison(0, placement_.memory.backward_workspace);
    call_.workspace = workspace_.view(placement_.memory.backward_workspace);
    run_steps(forward, plan.steps.size(), spoil);
  }

  Tensors gradients;
  std::vector<float> output, output_gradient;

 private:
  /// Lends tiles of the parameters that lie here.
  class Tiles final : public model::TileLender {
   public:
    explicit Tiles(Call& call) : call_(call) {}
    TensorView acquire(std::size_t tile) override {
      return rows(tile, call_.whole_[at(tile).parameter]);
    }
    void release(std::size_t /*tile*/) override {}
    model::GradientTarget gradients(std::size_t tile) override {
      return {rows(tile, call_.whole_gradients_[at(tile).parameter])};
    }
    void reduce(std::size_t /*tile*/) override {}

   private:
    [[nodiscard]] const model::ParameterTile& at(std::size_t tile) const {
      return call_.unit_.spec().tiles[tile];
    }
    [[nodiscard]] TensorView rows(std::size_t tile, const TensorView& whole) const {
      return whole.rows(at(tile).first_row, at(tile).rows);
    }
    Call& call_;
  };

  TensorView store(test::RandomUnit& random, const std::string& name, const Shape& shape) {
    const reference::Values& from = random.values.at(name);
    std::vector<float>& own = values_[name];
    own.assign(from.begin(), from.end());
    const HostView view(own, shape);
    whole_.push_back(view);
    return view;
  }
  TensorView gradient(const std::string& name, const Shape& shape) {
    std::vector<float>& own = gradients[name];
    own.assign(static_cast<std::size_t>(shape.numel()), std::numeric_limits<float>::quiet_NaN());
    const HostView view(own, shape);
    whole_gradients_.push_back(view);
    return view;
  }

  void run_steps(std::size_t begin, std::size_t end, Spoil spoil) {
    const model::StepRunner runner({unit_.record(), unit_.steps(), placement_}, call_, stream_);
    for (std::size_t i = begin; i < end; ++i) {
      runner.run(unit_.steps().steps[i]);
      if (spoil == Spoil::dead) spoil_dead(static_cast<int>(i));
    }
  }

  /// Poisons what no step behind `step` may read: buffers that are not needed any more and do not
  /// overlap one that is alive.
  void spoil_dead(int step) {
    const model::UnitPlan& plan = unit_.steps();
    const bool forward = step < plan.forward_steps;
    std::vector<bool> alive(static_cast<std::size_t>(call_.workspace.bytes()));
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      const model::UnitBuffer& buffer = plan.buffers[i];
      const bool here = (buffer.first < plan.forward_steps) == forward;
      if (buffer.kind != model::UnitBuffer::Kind::workspace || !here) continue;
      if (buffer.first > step || buffer.last <= step) continue;
      const Shape shape = model::shape_of(unit_.record(), buffer, call_.shape);
      const Bytes size = buffer.content == model::UnitBuffer::Content::value ||
                                 buffer.content == model::UnitBuffer::Content::kept
                             ? 4
                             : 1;
      const auto from = alive.begin() + placement_.offsets[i];
      std::fill(from, from + shape.numel() * size, true);
    }
    for (std::size_t at = 0; at < alive.size(); ++at) {
      if (!alive[at]) workspace_.poison(static_cast<Bytes>(at), static_cast<Bytes>(at) + 1);
    }
  }

  const model::RecordedUnit& unit_;
  model::Placement placement_;
  Memory saved_, workspace_;
  Tensors values_;
  std::vector<TensorView> parameter_views_, inputs_, outputs_, output_gradients_;
  std::vector<TensorView> whole_, whole_gradients_;
  std::vector<model::GradientTarget> parameter_targets_, input_targets_;
  std::optional<Tiles> tiles_;
  std::vector<std::int32_t> source_count_;
  model::UnitCall call_;
  CpuStream stream_{CpuStream::Mode::inline_on_caller};
};

TEST_CASE("Random units: gradients agree with central differences", "[model][unit]") {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    test::RandomUnit random(seed);
    CAPTURE(seed, random.text);
    Call call(random);
    call.run(Call::Spoil::nothing);
    const test::Tolerance tolerance{2e-4, 2e-3};
    CHECK(test::difference(call.output, random.output(), tolerance) == "");
    for (auto& [name, values] : random.values) {
      CAPTURE(name);
      const std::size_t stride = values.size() / 3 + 1;
      const auto expected = test::central_differences(
          values, [&] { return test::weighted_sum(random.output(), call.output_gradient); },
          stride);
      CHECK(test::difference(test::every(call.gradients.at(name), stride), expected, tolerance) ==
            "");
    }
  }
}

TEST_CASE("Random units: no buffer is read after its lifetime", "[model][unit]") {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    test::RandomUnit random(seed);
    CAPTURE(seed, random.text);
    Call plain(random);
    plain.run(Call::Spoil::nothing);
    Call spoiled(random);
    spoiled.run(Call::Spoil::dead);
    CHECK(spoiled.output == plain.output);
    CHECK(spoiled.gradients == plain.gradients);
  }
}

TEST_CASE("UnitBuilder: what computes the loss works on rows alone", "[model][unit]") {
  const int kind = GENERATE(0, 1, 2, 3);
  model::UnitBuilder u("head", "", {});
  const model::ParameterRef weight = u.own("weight", {7, 4}, {});
  model::Value x = u.read("x", 4);
  if (kind == 1) x = u.dropout(x, 0.1F);
  if (kind == 2) x = u.attention({x, x, x}, {.heads = 1, .kv_heads = 1, .head_size = 4});
  if (kind == 3) x = u.embedding({weight}, 4);
  if (kind == 0) {
    u.cross_entropy(u.scale(x, 2), weight, 7);
    CHECK(u.finish_loss()->spec().loss->classes == 7);
  } else {
    CHECK_THROWS_WITH(u.cross_entropy(x, weight, 7),
                      Catch::Matchers::ContainsSubstring("not by rows"));
  }
}

}  // namespace
}  // namespace dstrain
