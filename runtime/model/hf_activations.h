#pragma once
#include <array>

#include "runtime/model/config_fields.h"
#include "runtime/ops/activation.h"

namespace dstrain::model {

/// The names in config.json of the supported activations.
inline constexpr std::array<ChoiceName, 9> hf_activations = [] {
  using ops::Activation;
  const auto named = [](std::string_view name, Activation kind) {
    return ChoiceName{name, static_cast<std::int64_t>(kind)};
  };
  return std::array<ChoiceName, 9>{named("gelu_new", Activation::gelu_tanh),
                                   named("gelu_pytorch_tanh", Activation::gelu_tanh),
                                   named("gelu_fast", Activation::gelu_tanh),
                                   named("gelu", Activation::gelu),
                                   named("gelu_python", Activation::gelu),
                                   named("quick_gelu", Activation::quick_gelu),
                                   named("silu", Activation::silu),
                                   named("swish", Activation::silu),
                                   named("relu", Activation::relu)};
}();

}  // namespace dstrain::model
