#include "runtime/comm/mpi/mpi_library.h"

#include <array>
#include <exception>
#include <filesystem>
#include <string>

#include <dlfcn.h>

#include "runtime/base/error.h"

namespace dstrain::comm {
namespace {

constexpr const char* start_symbol = "dstrain_mpi_start_1";

/// Opened globally, because OpenMPI's own plug-ins look for its symbols there, and for good: MPI
/// leaves exit handlers behind that run its code.
void* open_plugin() {
  std::error_code no_link;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", no_link);
  const std::string beside = (program.parent_path() / mpi_plugin_name).string();
  std::string reason;
  for (const std::string& path : {beside, std::string(mpi_plugin_name)}) {
    if (void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return handle;
    reason = ::dlerror();
  }
  fail(ErrorCode::config,
       "cannot load {}, which brings MPI: {}: it is built when libopenmpi-dev is installed and "
       "needs "
       "libopenmpi3 on every node; DSTRAIN_COMM=gloo does without",
       mpi_plugin_name, reason);
}

}  // namespace

MpiLibrary::MpiLibrary() {
  void* const symbol = ::dlsym(open_plugin(), start_symbol);
  if (symbol == nullptr) {
    fail(ErrorCode::config, "{} is of another version: it lacks {}; install one version",
         mpi_plugin_name, start_symbol);
  }
  const int code = reinterpret_cast<decltype(&dstrain_mpi_start_1)>(symbol)(&api_);
  if (code != 0) fail(ErrorCode::comm, "MPI does not start: code {}", code);
}

MpiLibrary::~MpiLibrary() {
  if (std::uncaught_exceptions() > 0) return;
  const std::lock_guard lock(mutex_);
  api_.finish();
}

void MpiLibrary::check(int code, const char* attempted) const {
  if (code == 0) return;
  std::array<char, 512> text{};
  api_.describe(code, text.data(), static_cast<std::int32_t>(text.size()));
  fail(ErrorCode::comm, "MPI: {}: {}", attempted, text.data());
}

}  // namespace dstrain::comm
