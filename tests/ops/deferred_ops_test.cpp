// Every op on a device whose memory the host cannot reach, and which runs it when it likes.
#include "tests/support/deferred_ops.h"

#include "runtime/ops/add.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/copy_rows.h"
#include "runtime/tensor/buffer.h"
#include "runtime/tensor/host_access.h"
#include "tests/ops/all_ops.h"
#include "tests/support/catch.h"
#include "tests/support/deferred_device.h"

namespace dstrain {
namespace {

TEST_CASE("Deferred device: every op has the bits of the CPU", "[ops][deferred]") {
  test::install_deferred_ops();
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  CpuStream cpu(CpuStream::Mode::inline_on_caller);
  HostMemory host;
  const std::vector<test::TensorBytes> expected = test::run_all_ops({dtype, host, cpu});
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(1, 6)));
  test::DeferredDevice device(seed);
  const auto stream = device.make_stream();
  CHECK((test::run_all_ops({dtype, device.memory(), *stream}) == expected));
  // None was forgotten there.
  CHECK(test::called_deferred_ops().size() == sizeof(ops::OpTable) / sizeof(ops::OpTable::add));
}

TEST_CASE("Deferred device: an op refuses memory of the host and a copy takes it",
          "[ops][deferred]") {
  test::install_deferred_ops();
  test::DeferredDevice device(1);
  const auto stream = device.make_stream();
  const Buffer buffer(16, device.memory(), *stream);
  const TensorView values = buffer.block().cut(0, DType::f32, {4});
  std::vector<float> numbers{1, 2, 3, 4};
  std::vector<float> back(4);
  CHECK_THROWS_WITH(ops::add(HostView(numbers, {4}), values, *stream),
                    Catch::Matchers::ContainsSubstring("given host memory"));
  ops::convert(HostView(numbers, {4}), values, *stream);
  ops::add(values, values, *stream);
  ops::convert(values, HostView(back, {4}), *stream);
  stream->synchronize();
  CHECK(back == std::vector<float>{2, 4, 6, 8});
}

TEST_CASE("Deferred device: the host cannot access its memory", "[ops][deferred]") {
  test::DeferredDevice device(1);
  const auto stream = device.make_stream();
  const Buffer buffer(16, device.memory(), *stream);
  CHECK_THROWS_WITH(host_access(buffer.block()),
                    Catch::Matchers::ContainsSubstring("cannot reach this device"));
}

}  // namespace
}  // namespace dstrain
