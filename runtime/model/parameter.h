#pragma once
#include <string>

#include "runtime/tensor/shape.h"

namespace dstrain::model {

/// The initial values of a parameter if no model is loaded.
struct ParameterInit {
  enum class Kind { zeros, ones, normal };
  Kind kind = Kind::zeros;
  float stddev = 0;  ///< for `normal`, with mean 0
};

/// One tensor of a model. The name is its Hugging Face name without HfNames::prefix, unique in the
/// model.
struct ParameterSpec {
  std::string name;
  Shape shape;
  ParameterInit init;
};

/// Whether it is a bias or a norm's weight, which Hugging Face's Trainer does not decay. It decides
/// by name, and counts T5's (buckets, heads) `relative_attention_bias` as a bias.
inline bool is_bias_or_norm(const ParameterSpec& parameter) {
  return parameter.shape.rank() == 1 || parameter.name.find("bias") != parameter.name.npos;
}

}  // namespace dstrain::model
