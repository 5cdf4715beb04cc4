#include <nccl.h>

#include "tests/stand_in/real_headers/agreement.h"

#undef NCCL_CONFIG_INITIALIZER  // of all members, of which the stand-in has one

namespace dstrain::stand_in::declared {

#include <declared/nccl.inc>

DSTRAIN_DECLARED_WHOLE(ncclUniqueId)
DSTRAIN_DECLARED_MEMBER(ncclUniqueId, internal)
DSTRAIN_DECLARED_MEMBER(ncclConfig_t, blocking)

}  // namespace dstrain::stand_in::declared
