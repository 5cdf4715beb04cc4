#include "runtime/model/t5.h"

#include <cmath>

#include "runtime/model/unit_builder.h"

namespace dstrain::model {
namespace {

constexpr const char* shared_table = "shared.weight";
constexpr const char* encoded = "encoded";
constexpr const char* decoded = "decoded";

/// The encoder or the decoder.
struct Stack {
  const char* name;
  Axis axis;
  std::int64_t layers;
  [[nodiscard]] bool decodes() const { return axis == Axis::target; }
  /// Returns the input of layer `layer`; after the last layer, the input of the norm.
  [[nodiscard]] std::string hidden(std::int64_t layer) const {
    return fmt::format("{}{}", name, layer);
  }
};

/// Returns normal(0, factor / sqrt(size)).
ParameterInit normal(const T5Config& c, std::int64_t size = 1) {
  return {ParameterInit::Kind::normal, c.initializer_factor / std::sqrt(static_cast<float>(size))};
}

/// A block that is being recorded.
class T5Block {
 public:
  T5Block(const T5Config& config, Stack stack, std::int64_t layer, const UnitOptions& options)
      : c_(config),
        stack_(stack),
        layer_(layer),
        u_(fmt::format("{}.block.{}", stack.name, layer),
           fmt::format("{}.block.{}.", stack.name, layer),
           options) {}

  std::unique_ptr<Unit> record() {
    const Value x = u_.read(stack_.hidden(layer_), c_.d_model, stack_.axis);
    Value h = attend(x, {"layer.0", "SelfAttention"});
    if (stack_.decodes()) {
      const Value source = u_.read(encoded, c_.d_model, Axis::source);
      h = attend(h, {"layer.1", "EncDecAttention", source});
    }
    return u_.finish(feed_forward(h), stack_.hidden(layer_ + 1));
  }

 private:
  struct Sublayer {
    std::string_view layer;
    std::string_view attention;
    std::optional<Value> source{};  ///< attends to this value; none: to itself
  };

  Value linear(Value input, const std::string& name, std::int64_t outputs, ParameterInit init) {
    return u_.linear(input, name, {.outputs = outputs, .init = init});
  }
  Value norm(Value input, std::string_view sublayer) {
    return u_.rms_norm(input, fmt::format("{}.layer_norm", sublayer), c_.layer_norm_epsilon);
  }

  Value attend(Value x, const Sublayer& sublayer) {
    const std::string name = fmt::format("{}.{}", sublayer.layer, sublayer.attention);
    const std::int64_t width = c_.num_heads * c_.d_kv;
    const Value n = norm(x, sublayer.layer);
    const Value from = sublayer.source.value_or(n);
    const Value q = linear(n, name + ".q", width, normal(c_, c_.d_model * c_.d_kv));
    const Value k = linear(from, name + ".k", width, normal(c_, c_.d_model));
    const Value v = linear(from, name + ".v", width, normal(c_, c_.d_model));
    UnitBuilder::Attention attention{.heads = c_.num_heads,
                                     .kv_heads = c_.num_heads,
                                     .head_size = c_.d_kv,
                                     .rule = {.causal = stack_.decodes() && !sublayer.source},
                                     .dropout = c_.dropout_rate};
    if (!sublayer.source) bias(name, attention);
    const Value a = u_.attention({q, k, v}, attention);
    return u_.add(x, linear(a, name + ".o", c_.d_model, normal(c_, width)), c_.dropout_rate);
  }

  /// Sets the bias by distance; each stack has one.
  void bias(const std::string& name, UnitBuilder::Attention& attention) {
    const std::string table = name + ".relative_attention_bias.weight";
    const std::int64_t rows = c_.relative_attention_num_buckets;
    attention.rule.buckets = {rows, c_.relative_attention_max_distance, !stack_.decodes()};
    attention.bias = layer_ == 0 ? u_.own(table, {rows, c_.num_heads}, normal(c_, c_.d_model))
                                 : u_.borrow(fmt::format("{}.block.0.{}", stack_.name, table));
  }

  Value feed_forward(Value x) {
    const std::string_view sublayer = stack_.decodes() ? "layer.2" : "layer.1";
    const std::string name = fmt::format("{}.DenseReluDense", sublayer);
    const T5Mlp mlp = mlp_of(c_.feed_forward_proj);
    const Value n = norm(x, sublayer);
    const auto up = [&](const char* part) {
      return linear(n, name + part, c_.d_ff, normal(c_, c_.d_model));
    };
    const Value f = mlp.gated ? u_.gated(up(".wi_0"), up(".wi_1"), mlp.activation)
                              : u_.activation(up(".wi"), mlp.activation);
    const Value y =
        linear(u_.dropout(f, c_.dropout_rate), name + ".wo", c_.d_model, normal(c_, c_.d_ff));
    return u_.add(x, y, c_.dropout_rate);
  }

  const T5Config& c_;
  Stack stack_;
  std::int64_t layer_;
  UnitBuilder u_;
};

/// The encoder's owns the token table.
std::unique_ptr<Unit> embedding(const T5Config& c, const Stack& stack, const UnitOptions& options) {
  UnitBuilder u(stack.name, "", options);
  const ParameterRef table = stack.decodes()
                                 ? u.borrow(shared_table)
                                 : u.own(shared_table, {c.vocab_size, c.d_model}, normal(c));
  const Value x = u.embedding({.tokens = table, .axis = stack.axis}, c.d_model);
  return u.finish(u.dropout(x, c.dropout_rate), stack.hidden(0));
}

/// Makes the norm after the blocks of a stack.
std::unique_ptr<Unit> norm(const T5Config& c, const Stack& stack, const UnitOptions& options) {
  UnitBuilder u(fmt::format("{}.norm", stack.name), fmt::format("{}.", stack.name), options);
  const Value x = u.read(stack.hidden(stack.layers), c.d_model, stack.axis);
  const Value n = u.rms_norm(x, "final_layer_norm", c.layer_norm_epsilon);
  return u.finish(u.dropout(n, c.dropout_rate), stack.decodes() ? decoded : encoded);
}

/// Makes the logits by the token table, possibly with scaled inputs, or by the head's own weight.
std::unique_ptr<Unit> head(const T5Config& c, const UnitOptions& options) {
  UnitBuilder u("head", "", options);
  const Value x = u.read(decoded, c.d_model);
  if (!c.tie_word_embeddings) {
    u.cross_entropy(x, u.own(hf_head, {c.vocab_size, c.d_model}, normal(c)), c.vocab_size);
    return u.finish_loss();
  }
  const float scale = 1 / std::sqrt(static_cast<float>(c.d_model));
  u.cross_entropy(c.scale_decoder_outputs ? u.scale(x, scale) : x, u.borrow(shared_table),
                  c.vocab_size);
  return u.finish_loss();
}

void add_stack(Model& model, const T5Config& c, const Stack& stack, const UnitOptions& options) {
  model.units.push_back(embedding(c, stack, options));
  for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
    model.units.push_back(T5Block(c, stack, layer, options).record());
  }
  model.units.push_back(norm(c, stack, options));
}

}  // namespace

Model make_t5(const T5Config& config, const UnitOptions& options) {
  Model model = describe_model(config, options);
  const Stack encoder{"encoder", Axis::source, config.num_layers};
  const Stack decoder{"decoder", Axis::target, config.num_decoder_layers};
  add_stack(model, config, encoder, options);
  add_stack(model, config, decoder, options);
  model.units.push_back(head(config, options));
  const std::int64_t width = config.num_heads * config.d_kv;
  model.attention = {
      {.width = encoder.layers * width, .queries = Axis::source, .keys = Axis::source},
      {.width = decoder.layers * width, .causal = true},
      {.width = decoder.layers * width, .keys = Axis::source}};
  model.layers = encoder.layers + decoder.layers;
  model.outputs_first = true;
  model.pairs = PairTokens{static_cast<std::int32_t>(config.decoder_start_token_id),
                           static_cast<std::int32_t>(config.pad_token_id)};
  return model;
}

}  // namespace dstrain::model
