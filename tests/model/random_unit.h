#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/device/cpu_stream.h"
#include "runtime/model/recorded_unit.h"
#include "runtime/model/unit_builder.h"
#include "tests/support/reference_ops.h"

namespace dstrain::test {

/// A unit of random layers, of which some may have their positions on the axis of the source, and
/// the same in double: what double makes of its output for the values
/// that it has.
class RandomUnit {
 public:
  explicit RandomUnit(std::uint64_t seed);

  /// The unit's output, from its input and parameters.
  [[nodiscard]] reference::Values output() const;
  [[nodiscard]] const model::RecordedUnit& unit() const { return *unit_; }
  [[nodiscard]] model::BatchShape shape() const { return shape_; }
  /// How many positions of each source count.
  [[nodiscard]] const std::vector<std::int32_t>& source_count() const { return source_count_; }
  /// What dropout draws from.
  [[nodiscard]] model::DropoutSource dropout() const;

  /// By name: parameters, and "x", "z" and "source", which are the unit's inputs.
  mutable std::map<std::string, reference::Values> values;
  std::string text;  ///< the layers, for messages

 private:
  enum class Kind {
    read,
    layer_norm,
    rms_norm,
    linear,
    activation,
    gated,
    packed_gated,
    add,
    dropout,
    scale,
    attention,
    packed
  };
  struct Node {
    Kind kind = Kind::read;
    std::vector<std::size_t> inputs{};  ///< nodes
    std::string name{};
    std::int64_t features = 0;
    model::Axis axis = model::Axis::target;
    model::WeightLayout layout{};
    bool bias = false;
    ops::Activation activation{};
    std::int64_t groups = 1;
    model::DropoutPlace place{};
    reference::Attention attention{};
  };

  std::size_t add(Node node);
  /// On an axis that has one.
  std::size_t any_node(model::Axis axis);
  std::size_t any_node() { return any_node(nodes_[any_index()].axis); }
  std::size_t any_index();
  std::int64_t below(std::int64_t count);
  void add_random_layer();
  std::size_t linear(std::size_t input, std::int64_t features);
  /// Queries of `input`, keys and values of `other`.
  std::size_t attend(std::size_t input, std::size_t other);
  reference::Attention random_attention(model::Axis queries, model::Axis keys);
  std::size_t join(const std::vector<std::size_t>& nodes);
  std::size_t add_gated(std::size_t input, ops::Activation kind);
  std::size_t join_unread();
  void build(std::size_t output);
  void fill(std::uint64_t seed);
  [[nodiscard]] reference::Values evaluate(const Node& node,
                                           const std::vector<reference::Values>& all) const;
  [[nodiscard]] reference::Values attend(const Node& node,
                                         const std::vector<reference::Values>& all) const;
  static std::optional<model::ParameterRef> bias(model::UnitBuilder& u, const Node& node);
  [[nodiscard]] reference::Values mask(const Node& node) const;

  std::mt19937_64 random_;
  model::BatchShape shape_;
  std::vector<std::int32_t> source_count_;
  std::vector<Node> nodes_;
  std::vector<int> readers_;
  std::uint32_t next_place_ = 1;
  std::unique_ptr<model::Unit> owner_;
  const model::RecordedUnit* unit_ = nullptr;
  mutable std::array<std::int64_t, 2> counter_{3, 1};
};

}  // namespace dstrain::test
