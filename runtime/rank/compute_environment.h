#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace dstrain {

/// Whether a variable of this name changes how a process computes, or what memory and devices it
/// takes: settings of oneDNN, of CUDA and cuBLAS, and of the allocator. Not CUDA_VISIBLE_DEVICES,
/// which each rank has its own of.
bool changes_computing(std::string_view name);

/// Those of this process that ranks must have alike, "NAME=VALUE", in order of their names. Paths
/// are left out, as each machine has its own.
std::vector<std::string> compute_environment();

}  // namespace dstrain
