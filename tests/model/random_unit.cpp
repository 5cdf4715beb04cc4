#include "tests/model/random_unit.h"

#include <algorithm>

#include "runtime/ops/dropout.h"
#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"

namespace dstrain::test {
namespace {

constexpr std::array<std::int64_t, 4> widths{4, 8, 12, 24};
constexpr float eps = 1e-3F;
constexpr float factor = 0.7F;

std::vector<double> transposed(const reference::Values& matrix, std::size_t rows) {
  const std::size_t columns = matrix.size() / rows;
  reference::Values result(matrix.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) result[j * rows + i] = matrix[i * columns + j];
  }
  return result;
}

/// Of rows of a gate and a factor, each of so many features.
reference::Values packed_gated(ops::Activation kind,
                               const reference::Values& packed,
                               std::size_t features) {
  reference::Values result;
  for (std::size_t row = 0; row < packed.size(); row += 2 * features) {
    for (std::size_t i = row; i < row + features; ++i) {
      result.push_back(reference::activation(kind, packed[i]) * packed[i + features]);
    }
  }
  return result;
}

}  // namespace

RandomUnit::RandomUnit(std::uint64_t seed)
    : random_(seed), shape_{1 + static_cast<std::int64_t>(seed % 3), 5, 0} {
  add({.kind = Kind::read, .name = "x", .features = 8});
  if (below(3) == 0) {
    shape_.source = 7;
    for (std::int64_t i = 0; i < shape_.sequences; ++i) {
      source_count_.push_back(1 + static_cast<std::int32_t>(below(shape_.source)));
    }
    add({.kind = Kind::read, .name = "source", .features = 12, .axis = model::Axis::source});
  }
  if (below(3) == 0) add({.kind = Kind::read, .name = "z", .features = 12});
  const std::int64_t layers = 4 + below(9);
  for (std::int64_t i = 0; i < layers; ++i) add_random_layer();
  build(join_unread());
  fill(seed);
}

model::DropoutSource RandomUnit::dropout() const {
  return {.seed = 7, .counter = HostView(counter_, {2}), .unit = 2, .training = true};
}

std::int64_t RandomUnit::below(std::int64_t count) {
  return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(count));
}

std::size_t RandomUnit::any_index() {
  const auto count = static_cast<std::int64_t>(nodes_.size());
  // Mostly a late one, so that compositions grow deep.
  return static_cast<std::size_t>(below(2) == 0 ? count - 1 : below(count));
}

std::size_t RandomUnit::any_node(model::Axis axis) {
  std::size_t node = any_index();
  while (nodes_[node].axis != axis) node = node == 0 ? nodes_.size() - 1 : node - 1;
  return node;
}

std::size_t RandomUnit::add(Node node) {
  for (const std::size_t input : node.inputs) ++readers_[input];
  if (!node.inputs.empty()) node.axis = nodes_[node.inputs.front()].axis;
  node.place.number = 0;
  if (node.kind == Kind::add || node.kind == Kind::dropout || node.kind == Kind::attention ||
      node.kind == Kind::packed) {
    node.place.number = next_place_++;
  }
  if (node.name.empty()) node.name = "n" + std::to_string(nodes_.size());
  text += fmt::format(" {}:{}(", node.name, static_cast<int>(node.kind));
  for (const std::size_t input : node.inputs) text += " " + nodes_[input].name;
  text += fmt::format(" ){}", node.features);
  nodes_.push_back(std::move(node));
  readers_.push_back(0);
  return nodes_.size() - 1;
}

std::size_t RandomUnit::linear(std::size_t input, std::int64_t features) {
  return add({.kind = Kind::linear,
              .inputs = {input},
              .features = features,
              .layout = below(2) == 0 ? model::WeightLayout::inputs_first
                                      : model::WeightLayout::outputs_first,
              .bias = below(2) == 0});
}

reference::Attention RandomUnit::random_attention(model::Axis queries, model::Axis keys) {
  reference::Attention attention;
  const std::int64_t kv_heads = 1 + below(2);
  const std::int64_t heads = kv_heads * (1 + below(2));
  attention.sizes = {
      shape_.sequences, shape_.on(queries).tokens, shape_.on(keys).tokens, heads, kv_heads, 4};
  attention.rule.divisor = 2;
  attention.rule.causal = queries == keys && below(3) > 0;
  if (attention.rule.causal && below(2) == 0) attention.rule.window = 3;
  if (below(2) == 0) attention.rule.rotary = {4, 1, {1.0F, 0.1F}};
  if (below(2) == 0) attention.rule.buckets = {4, 5, !attention.rule.causal};
  if (keys == model::Axis::source) attention.key_counts = source_count_;
  return attention;
}

std::size_t RandomUnit::attend(std::size_t input, std::size_t other) {
  reference::Attention attention = random_attention(nodes_[input].axis, nodes_[other].axis);
  const std::int64_t queries = attention.sizes.heads * 4;
  const std::int64_t keys = attention.sizes.kv_heads * 4;
  if (nodes_[input].axis == nodes_[other].axis && below(2) == 0) {
    const std::size_t packed = linear(input, queries + 2 * keys);
    return add({.kind = Kind::packed,
                .inputs = {packed},
                .features = queries,
                .attention = std::move(attention)});
  }
  const std::size_t query = linear(input, queries);
  const std::size_t key = linear(any_node(nodes_[other].axis), keys);
  const std::size_t value = linear(other, keys);
  return add({.kind = Kind::attention,
              .inputs = {query, key, value},
              .features = queries,
              .attention = std::move(attention)});
}

std::size_t RandomUnit::add_gated(std::size_t input, ops::Activation kind) {
  Node node{.kind = Kind::gated, .features = 12, .activation = kind};
  if (below(2) == 0) {
    node.kind = Kind::packed_gated;
    node.inputs = {linear(input, 24)};
  } else {
    node.inputs = {linear(input, 12), linear(input, 12)};
  }
  return add(std::move(node));
}

void RandomUnit::add_random_layer() {
  const std::size_t input = any_node();
  const std::int64_t features = nodes_[input].features;
  const auto kind = static_cast<ops::Activation>(below(4));  // relu has no derivative at 0
  switch (below(9)) {
    case 0:
      add({.kind = Kind::layer_norm, .inputs = {input}, .features = features});
      break;
    case 1: {
      const std::int64_t groups = below(2) == 0 ? 1 : features / 4;
      add({.kind = Kind::rms_norm, .inputs = {input}, .features = features, .groups = groups});
      break;
    }
    case 2:
      linear(input, widths[static_cast<std::size_t>(below(4))]);
      break;
    case 3:  // as in an MLP, where pairs are fused
      linear(add({.kind = Kind::activation,
                  .inputs = {linear(input, 12)},
                  .features = 12,
                  .activation = kind}),
             features);
      break;
    case 4:
      linear(add_gated(input, kind), features);
      break;
    case 5: {
      const float rate = below(2) == 0 ? 0.0F : 0.3F;
      const std::size_t branch = linear(any_node(nodes_[input].axis), features);
      add({.kind = Kind::add, .inputs = {input, branch}, .features = features, .place = {rate}});
      break;
    }
    case 6:
      add({.kind = Kind::dropout, .inputs = {input}, .features = features, .place = {0.2F}});
      break;
    case 7:
      add({.kind = Kind::scale, .inputs = {input}, .features = features});
      break;
    default:
      attend(input, nodes_[input].axis == model::Axis::source ? any_node(model::Axis::source)
                                                              : any_node());
  }
}

std::size_t RandomUnit::join(const std::vector<std::size_t>& nodes) {
  std::size_t sum = linear(nodes.front(), 8);
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const std::size_t other = linear(nodes[i], 8);
    sum = add({.kind = Kind::add, .inputs = {sum, other}, .features = 8});
  }
  return sum;
}

/// What nobody reads is added up, so that all has a gradient; what has its positions on the axis of
/// the source is attended to.
std::size_t RandomUnit::join_unread() {
  const auto unread = [&](model::Axis axis) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (readers_[i] == 0 && nodes_[i].axis == axis) found.push_back(i);
    }
    return found;
  };
  const std::vector<std::size_t> sources = unread(model::Axis::source);
  if (!sources.empty()) attend(any_node(model::Axis::target), join(sources));
  return join(unread(model::Axis::target));
}

std::optional<model::ParameterRef> RandomUnit::bias(model::UnitBuilder& u, const Node& node) {
  const ops::RelativeBuckets& buckets = node.attention.rule.buckets;
  if (!buckets.active()) return std::nullopt;
  return u.own(node.name + ".bias", {buckets.count, node.attention.sizes.heads}, {});
}

void RandomUnit::build(std::size_t output) {
  model::UnitBuilder u("random", "", {.in_splits = 1 + below(3)});
  std::vector<model::Value> made;
  for (const Node& node : nodes_) {
    std::vector<model::Value> in;
    for (const std::size_t input : node.inputs) in.push_back(made[input]);
    const ops::AttentionSizes& sizes = node.attention.sizes;
    const model::UnitBuilder::Attention attention{.heads = sizes.heads,
                                                  .kv_heads = sizes.kv_heads,
                                                  .head_size = sizes.head_size,
                                                  .rule = node.attention.rule,
                                                  .bias = bias(u, node)};
    switch (node.kind) {
      case Kind::read:
        made.push_back(u.read(node.name, node.features, node.axis));
        break;
      case Kind::layer_norm:
        made.push_back(u.layer_norm(in[0], node.name, eps));
        break;
      case Kind::rms_norm:
        made.push_back(u.rms_norm(in[0], node.name, eps, node.groups));
        break;
      case Kind::linear:
        made.push_back(u.linear(in[0], node.name, {node.features, {}, node.layout, node.bias}));
        break;
      case Kind::activation:
        made.push_back(u.activation(in[0], node.activation));
        break;
      case Kind::gated:
        made.push_back(u.gated(in[0], in[1], node.activation));
        break;
      case Kind::packed_gated:
        made.push_back(u.gated(in[0], node.activation));
        break;
      case Kind::add:
        made.push_back(u.add(in[0], in[1], node.place.rate));
        break;
      case Kind::dropout:
        made.push_back(u.dropout(in[0], node.place.rate));
        break;
      case Kind::scale:
        made.push_back(u.scale(in[0], factor));
        break;
      case Kind::attention:
        made.push_back(u.attention({in[0], in[1], in[2]}, attention));
        break;
      case Kind::packed:
        made.push_back(u.attention(in[0], attention));
        break;
    }
  }
  owner_ = u.finish(made[output], "y");
  unit_ = &dynamic_cast<const model::RecordedUnit&>(*owner_);
}

void RandomUnit::fill(std::uint64_t seed) {
  for (const model::ParameterSpec& parameter : unit_->spec().parameters) {
    const bool norm = parameter.init.kind == model::ParameterInit::Kind::ones;
    reference::Values& own = values[parameter.name];
    const double spread = 1 / std::sqrt(static_cast<double>(parameter.shape[0]));
    for (const float value : random_values(parameter.shape.numel(), ++seed)) {
      own.push_back(norm ? 1 + 0.2 * static_cast<double>(value)
                         : spread * static_cast<double>(value));
    }
  }
  for (const std::string& name : unit_->spec().reads) {
    const std::int64_t features = name == "x" ? 8 : 12;
    const model::Axis axis = name == "source" ? model::Axis::source : model::Axis::target;
    const std::vector<float> drawn = random_values(shape_.on(axis).rows() * features, ++seed);
    values[name].assign(drawn.begin(), drawn.end());
  }
  for (auto& [name, own] : values) {  // what floats hold exactly
    for (double& value : own) value = static_cast<double>(static_cast<float>(value));
  }
}

reference::Values RandomUnit::mask(const Node& node) const {
  const model::BatchShape shape = shape_.on(node.axis);
  std::vector<float> ones(static_cast<std::size_t>(shape.rows() * node.features), 1.0F);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const HostView view(ones, {shape.sequences, shape.tokens, node.features});
  ops::dropout({.input = view, .residual = {}, .output = view, .site = node.place.site(dropout())},
               stream);
  return {ones.begin(), ones.end()};
}

reference::Values RandomUnit::attend(const Node& node,
                                     const std::vector<reference::Values>& all) const {
  reference::Attention attention = node.attention;
  if (attention.rule.buckets.active()) attention.bias = values.at(node.name + ".bias");
  const reference::Values& first = all[node.inputs[0]];
  if (node.kind == Kind::packed) return reference::packed_attention(attention, first);
  return reference::attention(attention, first, all[node.inputs[1]], all[node.inputs[2]]);
}

reference::Values RandomUnit::evaluate(const Node& node,
                                       const std::vector<reference::Values>& all) const {
  const auto in = [&](std::size_t i) -> const reference::Values& {
    return all[node.inputs[i]];
  };
  const auto parameter = [&](const char* part) -> const reference::Values& {
    return values.at(node.name + part);
  };
  switch (node.kind) {
    case Kind::read:
      return values.at(node.name);
    case Kind::layer_norm:
      return reference::layer_norm(in(0), parameter(".weight"), parameter(".bias"), eps);
    case Kind::rms_norm:
      return reference::rms_norm(in(0), parameter(".weight"), eps);
    case Kind::linear: {
      const auto outputs = static_cast<std::size_t>(node.features);
      const reference::Values bias =
          node.bias ? parameter(".bias") : reference::Values(outputs, 0.0);
      const bool inputs_first = node.layout == model::WeightLayout::inputs_first;
      return reference::linear(
          in(0), inputs_first ? parameter(".weight") : transposed(parameter(".weight"), outputs),
          bias);
    }
    case Kind::attention:
    case Kind::packed:
      return attend(node, all);
    case Kind::packed_gated:
      return packed_gated(node.activation, in(0), static_cast<std::size_t>(node.features));
    default:
      break;
  }
  const bool adds = node.kind == Kind::add;
  reference::Values result = in(adds ? 1 : 0);
  if (node.place.rate > 0) {
    const reference::Values drawn = mask(node);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] *= drawn[i];
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (adds) result[i] += in(0)[i];
    if (node.kind == Kind::scale) result[i] *= static_cast<double>(factor);
    if (node.kind == Kind::activation || node.kind == Kind::gated) {
      result[i] = reference::activation(node.activation, result[i]);
    }
    if (node.kind == Kind::gated) result[i] *= in(1)[i];
  }
  return result;
}

reference::Values RandomUnit::output() const {
  std::vector<reference::Values> all;
  for (const Node& node : nodes_) all.push_back(evaluate(node, all));
  return all.back();
}

}  // namespace dstrain::test
