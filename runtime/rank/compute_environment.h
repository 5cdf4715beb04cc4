#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace dstrain {

/// Whether a variable of this name changes how a process computes, or which memory and devices it
/// uses: settings of oneDNN, CUDA, cuBLAS and the allocator. Not CUDA_VISIBLE_DEVICES, which
/// differs for each rank.
bool changes_computing(std::string_view name);

/// Returns those variables of this process that must be equal on all ranks, "NAME=VALUE", ordered
/// by name. Paths are left out, because each machine has its own.
std::vector<std::string> compute_environment();

}  // namespace dstrain
