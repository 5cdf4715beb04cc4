#pragma once
#include <string>

namespace dstrain::config {

/// What a typed option says about the model, before its configuration is known.
struct ModelStatement {
  std::string option;    ///< "ffn_hidden_size"
  std::string typed_as;  ///< "--ffn-hidden-size" with underscores
  std::string value;     ///< empty: true
};

}  // namespace dstrain::config
