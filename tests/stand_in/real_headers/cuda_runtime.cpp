#include <cuda_runtime_api.h>

#include "tests/stand_in/real_headers/agreement.h"

// Flags, which are macros there.
inline constexpr unsigned cudaStreamNonBlocking_of_nvidia = cudaStreamNonBlocking;
inline constexpr unsigned cudaEventDefault_of_nvidia = cudaEventDefault;
inline constexpr unsigned cudaEventBlockingSync_of_nvidia = cudaEventBlockingSync;
inline constexpr unsigned cudaEventDisableTiming_of_nvidia = cudaEventDisableTiming;
inline constexpr unsigned cudaHostRegisterPortable_of_nvidia = cudaHostRegisterPortable;
inline constexpr unsigned cudaDeviceScheduleYield_of_nvidia = cudaDeviceScheduleYield;
inline constexpr unsigned cudaInitDeviceFlagsAreValid_of_nvidia = cudaInitDeviceFlagsAreValid;
#undef cudaStreamNonBlocking
#undef cudaEventDefault
#undef cudaEventBlockingSync
#undef cudaEventDisableTiming
#undef cudaHostRegisterPortable
#undef cudaDeviceScheduleYield
#undef cudaInitDeviceFlagsAreValid

namespace dstrain::stand_in::declared {

#include "declared/cuda_runtime_api.inc"
#include "tests/stand_in/include/cuda_runtime_api.h"

static_assert(cudaStreamNonBlocking == cudaStreamNonBlocking_of_nvidia);
static_assert(cudaEventDefault == cudaEventDefault_of_nvidia);
static_assert(cudaEventBlockingSync == cudaEventBlockingSync_of_nvidia);
static_assert(cudaEventDisableTiming == cudaEventDisableTiming_of_nvidia);
static_assert(cudaHostRegisterPortable == cudaHostRegisterPortable_of_nvidia);
static_assert(cudaDeviceScheduleYield == cudaDeviceScheduleYield_of_nvidia);
static_assert(cudaInitDeviceFlagsAreValid == cudaInitDeviceFlagsAreValid_of_nvidia);

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
