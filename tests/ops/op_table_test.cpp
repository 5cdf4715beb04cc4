#include "runtime/ops/op_table.h"

#include <array>

#include "runtime/ops/add.h"
#include "tests/support/catch.h"

namespace dstrain {
namespace {

/// Of a device that nobody has ops for.
class ForeignStream final : public Stream {
 public:
  ForeignStream() : Stream({DeviceKind::cuda, 0}) {}
  void synchronize() override {}
  [[nodiscard]] std::exception_ptr failure() const override { return nullptr; }
  void wait_until_idle() noexcept override {}

 private:
  std::shared_ptr<EventPoint> record() override { return nullptr; }
  void wait_for(std::shared_ptr<EventPoint> /*point*/) override {}
};

}  // namespace

TEST_CASE("OpTable: an op goes to the device of its stream", "[ops][op_table]") {
  std::array<float, 4> values{1, 2, 3, 4};
  std::array<float, 4> sum{};
  const HostView from(values, {4});
  const HostView to(sum, {4});
  ForeignStream stream;
  CHECK_THROWS_WITH(ops::add(from, to, stream),
                    Catch::Matchers::ContainsSubstring("no ops for this kind of device"));
  CHECK(sum == std::array<float, 4>{});
}

}  // namespace dstrain
