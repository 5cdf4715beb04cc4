#include "runtime/comm/nccl/nccl_library.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "runtime/os/file.h"
#include "runtime/os/plug_in.h"

namespace dstrain::comm {
namespace {

constexpr PlugIn library{.file = "libnccl.so.2"};

/// Returns the NCCL libraries that pip installs with PyTorch: in the active environment, the user's
/// packages, or the system's.
std::vector<std::string> find_pip_libraries() {
  std::vector<std::string> prefixes;
  for (const char* const variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* const prefix = std::getenv(variable)) prefixes.emplace_back(prefix);
  }
  if (const char* const home = std::getenv("HOME")) {
    prefixes.push_back(std::string(home) + "/.local");
  }
  prefixes.insert(prefixes.end(), {"/usr/local", "/usr"});
  std::vector<std::string> found;
  for (const std::string& prefix : prefixes) {
    const std::string pattern = prefix + "/lib/python3*/*-packages/nvidia/nccl/lib/" + library.file;
    for (std::string& path : any_paths_matching(pattern)) found.push_back(std::move(path));
  }
  return found;
}

/// Opens a plug-in if there is one, else the library of the toolkit (its path is in this library's
/// run path, where the loader looks), of the system, or of pip.
Result<void*> open_library() {
  if (has_plug_in(library)) return open_plug_in(library);
  void* opened = ::dlopen(library.file, RTLD_NOW | RTLD_LOCAL);
  if (opened != nullptr) return opened;
  const std::string reason = ::dlerror();
  for (const std::string& path : find_pip_libraries()) {
    opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened != nullptr) return opened;
  }
  return Failure{reason};
}

template <class Function>
void find(Function& function, void* opened, const char* symbol) {
  function = reinterpret_cast<Function>(plug_in_symbol(library, opened, symbol));
}

/// With this setting NCCL makes calls block although we ask for non-blocking ones, and then nothing
/// can end a call.
bool calls_block() {
  const char* const given = std::getenv("NCCL_COMM_BLOCKING");
  return given != nullptr && std::string_view(given) == "1";
}

Result<NcclApi> open_nccl() {
  if (calls_block()) {
    return Failure{"NCCL_COMM_BLOCKING is 1, and a call of NCCL's that blocks could not be ended"};
  }
  const Result<void*> opened = open_library();
  if (!opened.ok()) return Failure{opened.error()};
  void* const from = opened.value();
  NcclApi api{};
  try {
    find(api.ncclGetVersion, from, "ncclGetVersion");
    find(api.ncclGetErrorString, from, "ncclGetErrorString");
    find(api.ncclGetLastError, from, "ncclGetLastError");
    find(api.ncclGetUniqueId, from, "ncclGetUniqueId");
    find(api.ncclCommInitRankConfig, from, "ncclCommInitRankConfig");
    find(api.ncclCommGetAsyncError, from, "ncclCommGetAsyncError");
    find(api.ncclCommFinalize, from, "ncclCommFinalize");
    find(api.ncclCommDestroy, from, "ncclCommDestroy");
    find(api.ncclCommAbort, from, "ncclCommAbort");
    find(api.ncclAllGather, from, "ncclAllGather");
    find(api.ncclReduceScatter, from, "ncclReduceScatter");
    find(api.ncclBroadcast, from, "ncclBroadcast");
    find(api.ncclSend, from, "ncclSend");
    find(api.ncclRecv, from, "ncclRecv");
    find(api.ncclGroupStart, from, "ncclGroupStart");
    find(api.ncclGroupEnd, from, "ncclGroupEnd");
  } catch (const Error& error) {
    return Failure{error.what()};
  }
  return api;
}

}  // namespace

const Result<NcclApi>& nccl() {
  static const Result<NcclApi> opened = open_nccl();
  return opened;
}

}  // namespace dstrain::comm
