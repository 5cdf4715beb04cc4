#include <nccl.h>

#include "tests/stand_in/real_headers/agreement.h"

#undef NCCL_CONFIG_INITIALIZER  // initializes all members; the stand-in has only one of them

namespace dstrain::stand_in::declared {

#include <declared/nccl.inc>

DSTRAIN_DECLARED_WHOLE(ncclUniqueId)
DSTRAIN_DECLARED_MEMBER(ncclUniqueId, internal)
DSTRAIN_DECLARED_MEMBER(ncclConfig_t, blocking)

}  // namespace dstrain::stand_in::declared
