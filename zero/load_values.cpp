#include "zero/load_values.h"

#include <algorithm>
#include <vector>

#include "runtime/ops/convert.h"

namespace dstrain::zero {

void load_values(const model::ParameterSource& source,
                 const model::ParameterSpec& spec,
                 std::int64_t begin,
                 TensorView values,
                 StreamView stream) {
  constexpr std::int64_t piece = 1 << 18;
  std::vector<float> exact(static_cast<std::size_t>(std::min(piece, values.numel())));
  for (std::int64_t done = 0; done < values.numel(); done += piece) {
    const Shape count{std::min(piece, values.numel() - done)};
    const HostView read(exact, count);
    source.read(spec, begin + done, read.as<float>());
    ops::convert(read, values.part(done, count), stream);
    stream.synchronize();
  }
}

}  // namespace dstrain::zero
