#include "runtime/comm/nccl/nccl_library.h"

#include <cstdlib>
#include <string_view>

#include <dlfcn.h>

#include "runtime/base/plug_in.h"

namespace dstrain::comm {
namespace {

constexpr PlugIn library{.file = "libnccl.so.2"};

/// From here where it is no plug-in: where the toolkit has NCCL is written into this library, and
/// the loader looks there for who calls it.
Result<void*> open_library() {
  if (has_plug_in(library)) return open_plug_in(library);
  void* const opened = ::dlopen(library.file, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return Failure{::dlerror()};
  return opened;
}

template <class Function>
void find(Function& function, void* opened, const char* symbol) {
  function = reinterpret_cast<Function>(plug_in_symbol(library, opened, symbol));
}

/// NCCL lets this overrule that calls are not to block, after which nothing ends one.
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
