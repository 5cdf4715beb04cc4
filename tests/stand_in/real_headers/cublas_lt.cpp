#include <cublasLt.h>

#include "tests/stand_in/real_headers/agreement.h"

namespace dstrain::stand_in::declared {

#include <declared/cublasLt.inc>

DSTRAIN_DECLARED_WHOLE(cublasLtMatmulAlgo_t)
DSTRAIN_DECLARED_MEMBER(cublasLtMatmulHeuristicResult_t, algo)
DSTRAIN_DECLARED_MEMBER(cublasLtMatmulHeuristicResult_t, workspaceSize)
DSTRAIN_DECLARED_MEMBER(cublasLtMatmulHeuristicResult_t, state)

}  // namespace dstrain::stand_in::declared
