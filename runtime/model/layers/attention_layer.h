#pragma once
#include <optional>

#include "runtime/model/layer.h"
#include "runtime/model/layers/dropout_layer.h"
#include "runtime/ops/attention.h"

namespace dstrain::model {

/// Attention of queries (B, T, H D) to keys and values (B, S, K D) of their own axis, or of that of
/// the source, whose padding does not count. Three inputs, or one in which they are packed in that
/// order. Causal attention is limited to the document of the query. Keeps the log-sum-exp of each
/// query; backward reads its output. With a cache, the keys and values of a call are stored there.
/// The queries of sequences that have earlier positions attend to the cache, others to the call's
/// own keys.
class AttentionLayer final : public Layer {
 public:
  enum class Form : std::int8_t { apart, packed };
  struct Options {
    std::int64_t heads = 0;      ///< H
    std::int64_t kv_heads = 0;   ///< K
    std::int64_t head_size = 0;  ///< D
    ops::AttentionRule rule{};
    DropoutPlace dropout{};
    Form form = Form::apart;
    Axis queries = Axis::target;
    Axis keys = Axis::target;
    std::optional<ParameterRef> bias{};  ///< (rows of rule.buckets, H)
  };
  AttentionLayer(const Options& options, DeviceKind device) : options_(options), device_(device) {}
  [[nodiscard]] std::vector<InputUse> inputs() const override {
    const std::size_t count = options_.form == Form::packed ? 1 : 3;
    return std::vector<InputUse>(count, {.read_by_backward = true});
  }
  [[nodiscard]] bool backward_reads_output() const override { return true; }
  [[nodiscard]] std::vector<Shape> kept(BatchShape shape) const override {
    return {{shape.sequences, options_.heads, shape.tokens}};
  }
  /// Keys and values: of a sliding window as many as the queries of a call see.
  [[nodiscard]] std::vector<CachedSpec> cached(const CacheShape& shape) const override;
  [[nodiscard]] Bytes forward_workspace(BatchShape shape) const override;
  [[nodiscard]] Bytes backward_workspace(BatchShape shape) const override {
    return ops::attention_backward_workspace(sizes(shape), options_.rule, device_);
  }
  void forward(const LayerCall& call) const override;
  void backward(const LayerCall& call) const override;

 private:
  struct Projections;
  struct Sight;
  [[nodiscard]] ops::AttentionSizes sizes(BatchShape shape) const;
  /// Returns the projections, from one tensor or three.
  [[nodiscard]] Projections projections(std::span<const TensorView> tensors) const;
  [[nodiscard]] Sight sight(const LayerCall& call) const;
  /// Whether the queries are those of tokens that are generated one by one.
  [[nodiscard]] bool decodes() const { return options_.queries == Axis::target; }
  [[nodiscard]] ops::Rotary key_rotary() const {
    return options_.keys == Axis::target ? options_.rule.rotary : ops::Rotary{};
  }
  void append(const LayerCall& call, const Projections& in) const;
  void attend_to_cache(const LayerCall& call, const TensorView& query) const;

  Options options_;
  DeviceKind device_;
};

}  // namespace dstrain::model
