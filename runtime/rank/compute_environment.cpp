#include "runtime/rank/compute_environment.h"

#include <algorithm>
#include <array>

#include <unistd.h>

namespace dstrain {

bool changes_computing(std::string_view name) {
  constexpr std::array<std::string_view, 7> prefixes{
      "ONEDNN", "DNNL", "CUDA", "CUBLAS", "NVIDIA_TF32_OVERRIDE", "MALLOC", "GLIBC_TUNABLES"};
  return name != "CUDA_VISIBLE_DEVICES" &&
         std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::vector<std::string> compute_environment() {
  std::vector<std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == text.npos || !changes_computing(text.substr(0, equals))) continue;
    if (!text.substr(equals + 1).starts_with('/')) found.emplace_back(text);
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace dstrain
