#pragma once
#include <nccl.h>

#include "runtime/base/result.h"

namespace dstrain::comm {

/// NCCL's functions, by name. None is linked, so the plug-in also opens on machines without NCCL.
struct NcclApi {
  decltype(&::ncclGetVersion) ncclGetVersion;
  decltype(&::ncclGetErrorString) ncclGetErrorString;
  decltype(&::ncclGetLastError) ncclGetLastError;
  decltype(&::ncclGetUniqueId) ncclGetUniqueId;
  decltype(&::ncclCommInitRankConfig) ncclCommInitRankConfig;
  decltype(&::ncclCommGetAsyncError) ncclCommGetAsyncError;
  decltype(&::ncclCommFinalize) ncclCommFinalize;
  decltype(&::ncclCommDestroy) ncclCommDestroy;
  decltype(&::ncclCommAbort) ncclCommAbort;
  decltype(&::ncclAllGather) ncclAllGather;
  decltype(&::ncclReduceScatter) ncclReduceScatter;
  decltype(&::ncclBroadcast) ncclBroadcast;
  decltype(&::ncclSend) ncclSend;
  decltype(&::ncclRecv) ncclRecv;
  decltype(&::ncclGroupStart) ncclGroupStart;
  decltype(&::ncclGroupEnd) ncclGroupEnd;
};

/// Opens libnccl.so.2 once per process and keeps it open: as a plug-in (plug_in.h), else where this
/// library and the loader look. A failure is the loader's reason, or the missing function.
const Result<NcclApi>& nccl();

}  // namespace dstrain::comm
