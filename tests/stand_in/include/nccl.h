#pragma once
#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

// The parts of NCCL that the plug-in uses, like cuda_runtime_api.h.

using ncclComm_t = struct ncclComm*;
struct ncclUniqueId {
  char internal[128];
};
struct ncclConfig_t {
  int blocking;
};
#define NCCL_CONFIG_INITIALIZER \
  { 1 }

enum ncclResult_t : std::int32_t {
  ncclSuccess = 0,
  ncclSystemError = 2,
  ncclInvalidUsage = 5,
  ncclInProgress = 7,
};
enum ncclDataType_t : std::int32_t {
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclInt64 = 4,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclBfloat16 = 9,
};
enum ncclRedOp_t : std::int32_t { ncclSum = 0 };

extern "C" {
ncclResult_t ncclGetVersion(int* version);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(
    ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclAllGather(const void* from,
                           void* to,
                           std::size_t count,
                           ncclDataType_t type,
                           ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void* from,
                               void* to,
                               std::size_t count,
                               ncclDataType_t type,
                               ncclRedOp_t op,
                               ncclComm_t comm,
                               cudaStream_t stream);
ncclResult_t ncclBroadcast(const void* from,
                           void* to,
                           std::size_t count,
                           ncclDataType_t type,
                           int root,
                           ncclComm_t comm,
                           cudaStream_t stream);
ncclResult_t ncclSend(const void* from,
                      std::size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void* to,
                      std::size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
}
