#pragma once
#include <cmath>
#include <memory>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/model/parameter_source.h"

namespace dstrain::model {

/// The values of another source for a model in fp16. read() throws Error{input} for a value that
/// fp16 would round to infinity.
class Float16Source final : public ParameterSource {
 public:
  explicit Float16Source(std::unique_ptr<const ParameterSource> source)
      : source_(std::move(source)) {}
  void read(const ParameterSpec& spec, std::int64_t begin, std::span<float> values) const override {
    constexpr float least_infinite = 65520;
    source_->read(spec, begin, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::abs(values[i]) < least_infinite) continue;
      fail(ErrorCode::input, "{} holds {} (element {}), which is beyond fp16; train in bf16",
           spec.name, values[i], begin + static_cast<std::int64_t>(i));
    }
  }

 private:
  std::unique_ptr<const ParameterSource> source_;
};

}  // namespace dstrain::model
