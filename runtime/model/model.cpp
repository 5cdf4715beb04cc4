#include "runtime/model/model.h"

namespace dstrain::model {

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& unit : units) {
    for (const ParameterSpec& parameter : unit->spec().parameters) count += parameter.shape.numel();
  }
  return count;
}

double Model::flops_per_token(std::int64_t sequence_length) const {
  return 6.0 * static_cast<double>(parameter_count()) +
         6.0 * static_cast<double>(layers * hidden * sequence_length);
}

}  // namespace dstrain::model
