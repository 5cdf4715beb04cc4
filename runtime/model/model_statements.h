#pragma once
#include <span>
#include <string>
#include <string_view>

#include "runtime/model/model_config.h"

namespace dstrain::model {

/// What an option of another program says about a model: "--ffn_hidden_size 3072".
struct ModelStatement {
  std::string_view option;    ///< "ffn_hidden_size"
  std::string_view typed_as;  ///< "--ffn_hidden_size"
  std::string_view value;
};

/// Where the weights come from, of which only random ones have a spread and sizes to choose.
enum class WeightOrigin { random, stored };

/// Makes `config` what the statements set, which only training reads: dropout, and the spread of
/// random weights. What the others say must be so already. Throws Error{usage} with a line for each
/// that is not, and what to do about it.
void apply_statements(ModelConfig& config,
                      std::span<const ModelStatement> statements,
                      WeightOrigin weights);

}  // namespace dstrain::model
