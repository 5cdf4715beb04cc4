#include "runtime/model/llama.h"

#include "runtime/base/error.h"

namespace dstrain::model {

Model make_llama(const LlamaConfig& config, const UnitOptions& /*options*/) {
  fail(ErrorCode::usage, "models of the family {} are not implemented yet",
       config.family().model_type);
}

}  // namespace dstrain::model
