#pragma once

namespace dstrain::stand_in {

/// Whether this call of a function is the one that fails: DSTRAIN_STAND_IN_REFUSES, as in
/// "cudaMalloc 3", names a function and which of its calls, from 1 on. "cudaErrorIllegalAddress 40"
/// is the 40th kernel, after which every call fails. With DSTRAIN_STAND_IN_REFUSES_RANK only calls
/// of the process with this RANK. "ncclCommGetAsyncError 1 after ncclReduceScatter" counts from the
/// first call of the other function on, for what a thread calls over and over.
bool refuses(const char* function);

/// Counts the kernels that are launched for that.
void count_kernel();

}  // namespace dstrain::stand_in
