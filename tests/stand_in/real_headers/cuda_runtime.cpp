#include <cuda_runtime_api.h>

#include "tests/stand_in/real_headers/agreement.h"

namespace dstrain::stand_in::declared {

#include <declared/cuda_runtime_api.inc>

DSTRAIN_DECLARED_WHOLE(cudaUUID_t)
DSTRAIN_DECLARED_WHOLE(float4)
DSTRAIN_DECLARED_MEMBER(cudaUUID_t, bytes)
DSTRAIN_DECLARED_MEMBER(cudaDeviceProp, name)
DSTRAIN_DECLARED_MEMBER(cudaDeviceProp, uuid)
DSTRAIN_DECLARED_MEMBER(cudaDeviceProp, major)
DSTRAIN_DECLARED_MEMBER(cudaDeviceProp, minor)
DSTRAIN_DECLARED_MEMBER(cudaDeviceProp, pciBusID)
DSTRAIN_DECLARED_MEMBER(cudaDeviceProp, pciDeviceID)
DSTRAIN_DECLARED_MEMBER(cudaDeviceProp, pciDomainID)
DSTRAIN_DECLARED_MEMBER(cudaPointerAttributes, type)

}  // namespace dstrain::stand_in::declared
