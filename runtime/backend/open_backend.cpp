#include "runtime/backend/open_backend.h"

#include <string_view>

#include "runtime/backend/cpu_backend.h"
#include "runtime/base/error.h"
#include "runtime/os/gpu_files.h"
#include "runtime/os/plug_in.h"

namespace dstrain {
namespace {

constexpr PlugIn cuda_plug_in{.file = "libdstrain_cuda.so"};

/// Starts the backend of a plug-in. Its errors do not name --device.
std::unique_ptr<Backend> start(const PlugIn& plug_in, Device device) {
  const Result<void*> opened = open_plug_in(plug_in);
  if (!opened.ok()) {
    fail(ErrorCode::config, "{} cannot be loaded: {}", plug_in.file, opened.error());
  }
  const BackendEntry entry =
      reinterpret_cast<BackendFunction*>(plug_in_symbol(plug_in, opened.value(), backend_symbol))();
  if (std::string_view(entry.version) != DSTRAIN_VERSION) {
    fail(ErrorCode::config, "{} is of dstrain {}, and this is {}; install one version",
         plug_in.file, entry.version, DSTRAIN_VERSION);
  }
  return entry.start(device);
}

}  // namespace

DeviceKind resolve_device(DeviceChoice choice) {
  if (choice == DeviceChoice::cpu) return DeviceKind::cpu;
  if (choice == DeviceChoice::cuda) return DeviceKind::cuda;
  const bool uses_gpus = count_visible_gpu_files() > 0 && has_plug_in(cuda_plug_in);
  return uses_gpus ? DeviceKind::cuda : DeviceKind::cpu;
}

std::unique_ptr<Backend> open_backend(Device device) {
  if (device.kind == DeviceKind::cpu) return std::make_unique<CpuBackend>();
  try {
    if (device.kind == DeviceKind::cuda) check_visible_gpus();
    std::unique_ptr<Backend> backend = start(cuda_plug_in, device);
    ops::set_op_table(device.kind, backend->op_table());
    return backend;
  } catch (const Error& error) {
    fail(ErrorCode::config, "--device {}: {} (--device cpu computes without it)",
         name_of(device.kind), error.what());
  }
}

}  // namespace dstrain
