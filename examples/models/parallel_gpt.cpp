#include "examples/models/parallel_gpt.h"

#include <cmath>

#include <fmt/format.h>

#include "runtime/model/rope_scaling.h"
#include "runtime/model/unit_builder.h"

namespace dstrain::examples {
namespace {

using model::UnitBuilder;
using model::Value;

constexpr model::ParameterInit normal{model::ParameterInit::Kind::normal, 0.02F};
constexpr const char* table = "tokens.weight";
constexpr float eps = 1e-6F;

std::string hidden(std::int64_t layer) {
  return fmt::format("hidden{}", layer);
}

std::unique_ptr<model::Unit> embedding(const ParallelGptSizes& s, const model::UnitOptions& o) {
  UnitBuilder u("embedding", "", o);
  const model::ParameterRef tokens = u.own(table, {s.vocabulary, s.hidden}, normal);
  return u.finish(u.embedding({tokens}, s.hidden), hidden(0));
}

/// y = x + attention(norm(x)) + mlp(norm(x)).
std::unique_ptr<model::Unit> block(const ParallelGptSizes& s,
                                   std::int64_t layer,
                                   const model::UnitOptions& o) {
  const std::string name = fmt::format("blocks.{}", layer);
  UnitBuilder u(name, name + ".", o);
  const std::int64_t head_size = s.hidden / s.heads;
  const Value x = u.read(hidden(layer), s.hidden);
  const Value n = u.rms_norm(x, "norm", eps);
  const Value qkv = u.linear(n, "qkv", {(s.heads + 2 * s.kv_heads) * head_size, normal});
  const Value a =
      u.attention(qkv, {.heads = s.heads,
                        .kv_heads = s.kv_heads,
                        .head_size = head_size,
                        .rule = {.divisor = std::sqrt(static_cast<float>(head_size)),
                                 .rotary = model::make_rotary({s.rotary_dims}, 10000, {})}});
  const Value h = u.add(x, u.linear(a, "out", {s.hidden, normal}), s.dropout);
  const Value f = u.activation(u.linear(n, "up", {4 * s.hidden, normal}), ops::Activation::gelu);
  return u.finish(u.add(h, u.linear(f, "down", {s.hidden, normal}), s.dropout), hidden(layer + 1));
}

std::unique_ptr<model::Unit> head(const ParallelGptSizes& s, const model::UnitOptions& o) {
  UnitBuilder u("head", "", o);
  const Value x = u.read(hidden(s.layers), s.hidden);
  u.cross_entropy(u.rms_norm(x, "last_norm", eps), u.borrow(table), s.vocabulary);
  return u.finish_loss();
}

}  // namespace

model::Model make_parallel_gpt(const ParallelGptSizes& sizes, const model::UnitOptions& options) {
  model::Model model;
  model.name = "parallel_gpt";
  model.dtype = options.dtype;
  model.device = options.device;
  model.units.push_back(embedding(sizes, options));
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
    model.units.push_back(block(sizes, layer, options));
  }
  model.units.push_back(head(sizes, options));
  model.vocabulary = sizes.vocabulary;
  model.positions = sizes.positions;
  model.hidden = sizes.hidden;
  model.layers = sizes.layers;
  model.attention = {{.width = sizes.layers * sizes.hidden, .causal = true}};
  model.outputs_first = true;
  return model;
}

}  // namespace dstrain::examples
