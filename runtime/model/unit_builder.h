#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "runtime/model/layers/dropout_layer.h"
#include "runtime/model/layers/embedding_layer.h"
#include "runtime/model/layers/linear_layer.h"
#include "runtime/model/unit_record.h"
#include "runtime/ops/activation.h"
#include "runtime/ops/attention.h"

namespace dstrain::model {

/// A value of a unit that is being recorded.
struct Value {
  int index = RecordedValue::none;
};

/// Records a unit layer by layer; its memory, its backward and its tiles are derived (unit_plan.h).
/// Layers run in the order in which they are recorded, and own their parameters in that order. A
/// `name` is a parameter's name without the unit's prefix.
class UnitBuilder {
 public:
  /// `prefix` precedes the names of all parameters that the unit owns.
  UnitBuilder(std::string name, std::string_view prefix, const UnitOptions& options);

  /// An activation that the unit reads; values computed from it have its positions.
  Value read(const std::string& activation, std::int64_t features, Axis axis = Axis::target);

  /// Add a parameter that the unit owns, and one that another unit owns, by its whole name.
  ParameterRef own(std::string_view name, Shape shape, ParameterInit init);
  ParameterRef borrow(const std::string& name);

  /// Rows of tables with `features` features, by the tokens of an axis and by their positions.
  Value embedding(const EmbeddingLayer::Tables& tables, std::int64_t features);

  /// The `count` features that the batch has for each position.
  Value batch_features(std::int64_t count);

  /// Layer normalisation: NAME.weight and NAME.bias.
  Value layer_norm(Value input, std::string_view name, float eps);
  /// Root-mean-square normalisation: NAME.weight. With `groups`, of each such part of the features.
  Value rms_norm(Value input, std::string_view name, float eps, std::int64_t groups = 1);

  struct Linear {
    std::int64_t outputs = 0;  ///< N
    ParameterInit init;
    WeightLayout layout = WeightLayout::outputs_first;
    bool bias = false;
  };
  /// Uses NAME.weight, which may be in tiles, and NAME.bias.
  Value linear(Value input, std::string_view name, const Linear& linear);

  struct Attention {
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;  ///< number of heads of keys and values
    std::int64_t head_size = 0;
    ops::AttentionRule rule{};
    float dropout = 0;                   ///< of the probabilities
    std::optional<ParameterRef> bias{};  ///< (rows of rule.buckets, heads)
  };
  struct Projections {
    Value query;
    Value key;
    Value value;
  };
  /// Queries on one axis, keys and values on the same or another.
  Value attention(const Projections& projections, const Attention& attention);
  /// The same for queries, keys and values that are packed, in this order.
  Value attention(Value packed, const Attention& attention);

  Value activation(Value input, ops::Activation kind);
  /// activation(gate) factor.
  Value gated(Value gate, Value factor, ops::Activation kind);
  /// The same for a gate and a factor that are packed, in this order.
  Value gated(Value packed, ops::Activation kind);
  Value dropout(Value input, float rate);
  Value scale(Value input, float factor);
  /// residual + branch, with dropout of the branch.
  Value add(Value residual, Value branch, float dropout = 0);

  /// Any other layer, whose output has `features` features.
  Value custom(std::unique_ptr<const Layer> layer,
               const std::vector<Value>& inputs,
               std::int64_t features);

  /// Returns the unit, which writes `output` as `activation`.
  std::unique_ptr<Unit> finish(Value output, const std::string& activation);

  // Losses, each times a factor. The unit's layers see some rows of a batch at a time: these throw
  // Error{internal} if one attends, drops or reads tokens.
  /// Cross-entropy of logits by a weight (classes, C).
  void cross_entropy(Value input, ParameterRef weight, std::int64_t classes, float factor = 1);
  /// Mean squared error of values as predictions of UnitCall::targets.
  void mean_squared_error(Value input, float factor = 1);
  /// Mean of values that are losses already.
  void mean_value(Value input, float factor = 1);
  /// Returns the unit, which computes the sum of the losses. Its logits are those of the first one,
  /// or its predictions.
  std::unique_ptr<Unit> finish_loss();

 private:
  [[nodiscard]] std::int64_t features(Value value) const;
  /// Places are numbered from 1 on; 0 belongs to the embedding.
  DropoutPlace place(float rate) {
    by_rows_ = by_rows_ && rate == 0;
    return {rate, next_place_++};
  }
  struct LossPart {
    std::int64_t outputs = 0;
    float factor = 1;
  };
  LossSpec& add_loss(std::unique_ptr<const Layer> layer, Value input, LossPart part);
  Value add_attention(const std::vector<Value>& inputs, const Attention& attention);
  /// The output has the positions of the first input, or those of `axis` if there is none.
  Value add_layer(std::unique_ptr<const Layer> layer,
                  const std::vector<Value>& inputs,
                  std::int64_t features,
                  Axis axis = Axis::target);

  std::string prefix_;
  UnitOptions options_;
  UnitRecord record_;
  std::uint32_t next_place_ = 1;
  bool by_rows_ = true;  ///< each row of a value depends only on the same row of its inputs, and
                         ///< not on its position
};

}  // namespace dstrain::model
