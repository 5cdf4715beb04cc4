#pragma once
#include <cstdint>
#include <span>

#include "runtime/model/parameter.h"

namespace dstrain::model {

/// Source of the initial values of parameters: drawn at random or read from a file. Any range can
/// be read, so that a rank needs only its slices. Thread-safe.
class ParameterSource {
 public:
  virtual ~ParameterSource() = default;
  /// Writes elements [begin, begin + values.size()) of the parameter, row-major, into `values`.
  virtual void read(const ParameterSpec& spec,
                    std::int64_t begin,
                    std::span<float> values) const = 0;
};

}  // namespace dstrain::model
