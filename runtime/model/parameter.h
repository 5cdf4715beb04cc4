#pragma once
#include <string>

#include "runtime/tensor/shape.h"

namespace dstrain::model {

/// How a parameter starts when no model is loaded.
struct ParameterInit {
  enum class Kind { zeros, ones, normal };
  Kind kind = Kind::zeros;
  float stddev = 0;  ///< of `normal`, whose mean is 0
};

/// One tensor of a model. The name is its Hugging Face name without HfNames::prefix, unique in the
/// model.
struct ParameterSpec {
  std::string name;
  Shape shape;
  ParameterInit init;
};

}  // namespace dstrain::model
