#pragma once
#include <string>

namespace dstrain::config {

/// What a typed option says about the model, whose configuration is not known yet.
struct ModelStatement {
  std::string option;    ///< "ffn_hidden_size"
  std::string typed_as;  ///< "--ffn-hidden-size" with underscores
  std::string value;     ///< empty: true
};

}  // namespace dstrain::config
