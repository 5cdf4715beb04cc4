#pragma once

namespace dstrain::stand_in {

/// Whether this call of a function must fail. DSTRAIN_STAND_IN_REFUSES names a function and the
/// number of the call, from 1 on: "cudaMalloc 3". "cudaErrorIllegalAddress 40" breaks the GPU at
/// the 40th kernel: every later call fails. With DSTRAIN_STAND_IN_REFUSES_RANK only the process
/// with this RANK is affected. "ncclCommGetAsyncError 1 after ncclReduceScatter" counts from the
/// first call of the second function on, for functions that a thread polls.
bool refuses(const char* function);

/// Counts a launched kernel for "cudaErrorIllegalAddress".
void count_kernel();

}  // namespace dstrain::stand_in
