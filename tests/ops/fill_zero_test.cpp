#include "runtime/ops/fill_zero.h"

#include <algorithm>
#include <vector>

#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"

namespace dstrain {
namespace {

TEST_CASE("FillZero: all of a tensor and nothing beside it", "[ops][fill_zero]") {
  const std::int64_t numel = GENERATE(0, 1, 33, 40'000, 100'001);
  std::vector<BFloat16> values(static_cast<std::size_t>(numel) + 2, BFloat16{0x1234});
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::fill_zero(HostView(values, {numel + 2}).part(1, {numel}), stream);
  CHECK(values.front().bits == 0x1234);
  CHECK(values.back().bits == 0x1234);
  CHECK(std::ranges::count(values, BFloat16{}) == numel);
}

}  // namespace
}  // namespace dstrain
