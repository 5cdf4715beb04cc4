#pragma once
#include <cstdint>
#include <span>

#include "runtime/model/parameter.h"

namespace dstrain::model {

/// Where the first values of parameters come from: drawn at random or read from a file. Any range
/// can be asked for on its own, so no rank needs more than its slices. Safe from several threads.
class ParameterSource {
 public:
  virtual ~ParameterSource() = default;
  /// Writes elements [begin, begin + values.size()) of the parameter, row-major, into `values`.
  virtual void read(const ParameterSpec& spec,
                    std::int64_t begin,
                    std::span<float> values) const = 0;
};

}  // namespace dstrain::model
