#pragma once
#include <span>
#include <string>
#include <string_view>

#include "runtime/model/model_config.h"

namespace dstrain::model {

/// A statement about a model by an option of another program: "--ffn_hidden_size 3072".
struct ModelStatement {
  std::string_view option;    ///< "ffn_hidden_size"
  std::string_view typed_as;  ///< "--ffn_hidden_size"
  std::string_view value;
};

/// The source of the weights. Only random ones allow to choose sizes and spread.
enum class WeightOrigin { random, stored };

/// Sets the statements in `config` that only training reads: dropout, and the spread of random
/// weights. All others must hold already. Throws Error{usage} with a line for each that does not,
/// and its remedy.
void apply_statements(ModelConfig& config,
                      std::span<const ModelStatement> statements,
                      WeightOrigin weights);

}  // namespace dstrain::model
