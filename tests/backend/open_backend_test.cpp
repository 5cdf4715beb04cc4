#include "runtime/backend/open_backend.h"

#include <array>
#include <filesystem>
#include <fstream>

#include "runtime/comm/self/self_communicator.h"
#include "runtime/ops/convert.h"
#include "runtime/tensor/buffer.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"
#include "tests/support/variable.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using test::Variable;

namespace {

const std::filesystem::path backends = DSTRAIN_TEST_BACKENDS;
constexpr Device gpu{DeviceKind::cuda, 0};

/// What is said of a plug-in in that folder.
std::string refusal(const std::filesystem::path& folder) {
  const Variable path(env::plug_in_path, folder.string());
  return test::error_of([] { open_backend(gpu); });
}

}  // namespace

TEST_CASE("Backend: the CPU computes on the calling thread with the host's collectives",
          "[backend]") {
  const auto backend = open_backend({});
  CHECK(backend->device() == Device{});
  CHECK(&backend->op_table() == &ops::cpu_op_table());
  auto communicator = comm::make_self_communicator();
  const comm::Communicator* const given = communicator.get();
  HostMemory host;
  const auto control = comm::make_self_control_group();
  CHECK(backend->connect({std::move(communicator), *control, host}).get() == given);
}

TEST_CASE("Backend: a plug-in provides memory and streams and ops and collectives", "[backend]") {
  const Variable path(env::plug_in_path,
                      (backends / "nothing").string() + "::" + (backends / "deferred").string());
  const auto backend = open_backend(gpu);
  CHECK(backend->device() == gpu);
  const auto stream = backend->make_stream(Backend::StreamUse::computing);
  CHECK(stream->device().kind == DeviceKind::cuda);
  CHECK(&ops::op_table(*stream) == &backend->op_table());
  HostMemory host;
  const auto control = comm::make_self_control_group();
  const auto communicator = backend->connect({comm::make_self_communicator(), *control, host});
  std::array<float, 3> sent{1, 2, 3};
  std::array<float, 3> received{};
  {
    const Buffer values(12, backend->memory(), *stream);
    const TensorView view = values.block().cut(0, DType::f32, {3});
    ops::convert(HostView(sent, {3}), view, *stream);
    communicator->all_reduce(view, *stream);
    ops::convert(view, HostView(received, {3}), *stream);
    stream->synchronize();
  }
  CHECK(received == sent);
}

TEST_CASE("Backend: an Error of a plug-in is caught as one", "[backend]") {
  const Variable path(env::plug_in_path, (backends / "deferred").string());
  const auto backend = open_backend(gpu);
  const auto stream = backend->make_stream(Backend::StreamUse::computing);
  try {
    Buffer(Bytes{1} << 40, backend->memory(), *stream);
    FAIL("the device has room for a terabyte");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::out_of_device_memory);
  }
}

TEST_CASE("Backend: a plug-in that cannot be used is refused with the reason", "[backend]") {
  CHECK(refusal(backends / "other_version") ==
        "--device cuda: libdstrain_cuda.so is of dstrain 0.0.1, and this is " DSTRAIN_VERSION
        "; install one version (--device cpu computes without it)");
  CHECK(refusal(backends / "failing") ==
        "--device cuda: device 0: no driver is loaded (--device cpu computes without it)");
  const test::TempDir folder;
  std::ofstream(folder.path() / "libdstrain_cuda.so") << "no library";
  CHECK_THAT(
      refusal(folder.path()),
      StartsWith("--device cuda: libdstrain_cuda.so cannot be loaded: " + folder.path().string()) &&
          ContainsSubstring("too short"));
}

TEST_CASE("Backend: auto is a GPU where there are some and their plug-in", "[backend]") {
  const test::TempDir folder;
  const Variable files(env::gpu_directory, folder.path().string());
  const Variable path(env::plug_in_path, (backends / "deferred").string());
  CHECK(resolve_device(DeviceChoice::cuda) == DeviceKind::cuda);
  CHECK(resolve_device(DeviceChoice::automatic) == DeviceKind::cpu);
  std::ofstream(folder.path() / "nvidia3") << "";
  CHECK(resolve_device(DeviceChoice::automatic) == DeviceKind::cuda);
  CHECK(resolve_device(DeviceChoice::cpu) == DeviceKind::cpu);
  const Variable hidden("CUDA_VISIBLE_DEVICES", "-1");
  CHECK(resolve_device(DeviceChoice::automatic) == DeviceKind::cpu);
}

TEST_CASE("Backend: visible GPUs must exist", "[backend]") {
  const test::TempDir folder;
  const Variable files(env::gpu_directory, folder.path().string());
  const Variable path(env::plug_in_path, (backends / "deferred").string());
  std::ofstream(folder.path() / "nvidia3") << "";
  const Variable other("CUDA_VISIBLE_DEVICES", "0,1");
  const std::string reason = "CUDA_VISIBLE_DEVICES=0,1: there is no GPU 1: one GPU is there, 0";
  CHECK_THROWS_WITH(resolve_device(DeviceChoice::automatic), StartsWith(reason));
  CHECK_THROWS_WITH(open_backend({DeviceKind::cuda, 0}), StartsWith("--device cuda: " + reason));
  CHECK(open_backend({DeviceKind::cpu, 0}) != nullptr);
}
