#include "runtime/model/random_source.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/units.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/numeric/philox.h"

namespace dstrain::model {

RandomSource::RandomSource(std::uint64_t seed, std::span<const ParameterSpec> parameters)
    : seed_(seed) {
  for (const ParameterSpec& spec : parameters) {
    const auto ordinal = static_cast<std::uint32_t>(ordinals_.size());
    DSTRAIN_CHECK(ordinals_.emplace(spec.name, ordinal).second, "two parameters named {}",
                  spec.name);
  }
}

void RandomSource::read(const ParameterSpec& spec,
                        std::int64_t begin,
                        std::span<float> values) const {
  const auto found = ordinals_.find(spec.name);
  DSTRAIN_CHECK(found != ordinals_.end(), "{} was not among the parameters", spec.name);
  const std::uint32_t ordinal = found->second;
  const auto count = static_cast<std::int64_t>(values.size());
  DSTRAIN_CHECK(begin >= 0 && count <= spec.shape.numel() - begin, "elements {}+{} of {} {}", begin,
                count, spec.name, to_string(spec.shape));
  if (spec.init.kind != ParameterInit::Kind::normal) {
    std::fill(values.begin(), values.end(),
              spec.init.kind == ParameterInit::Kind::ones ? 1.0F : 0.0F);
    return;
  }
  constexpr std::int64_t block = 16384;
  parallel_for(round_up(count, block) / block, [&](std::int64_t b) {
    const std::int64_t from = b * block;
    const auto part = values.subspan(static_cast<std::size_t>(from),
                                     static_cast<std::size_t>(std::min(block, count - from)));
    normal_floats({seed_, RandomPurpose::init, ordinal, static_cast<std::uint64_t>(begin + from)},
                  part);
    for (float& value : part) value *= spec.init.stddev;
  });
}

}  // namespace dstrain::model
