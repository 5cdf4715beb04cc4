#include "cmd/node_memory.h"

#include <fmt/format.h>

namespace dstrain::cmd {

std::optional<AvailableMemory> exceeded_memory(const zero::MemoryPlan& plan,
                                               int ranks,
                                               Bytes budget) {
  const Bytes needs = ranks * plan.machine_total();
  const auto available =
      budget > 0
          ? AvailableMemory{budget, fmt::format("--host_memory allows {}", format_bytes(budget))}
          : available_memory();
  if (!available || needs <= available->bytes) return std::nullopt;
  return AvailableMemory{available->bytes,
                         fmt::format("{} rank(s) of this machine need {} of its memory, and {}",
                                     ranks, format_bytes(needs), available->reason)};
}

}  // namespace dstrain::cmd
