#pragma once
#include <optional>

#include "runtime/base/available_memory.h"
#include "zero/memory_plan.h"

namespace dstrain::cmd {

/// What there is of this machine's memory, and how far `ranks` ranks of it, planned alike, exceed
/// that: "2 rank(s) of this machine need ... and ..."; nothing where they fit, or the kernel does
/// not say what there is.
/// `budget`: what they may take together (--host_memory); 0: what is available now.
std::optional<AvailableMemory> exceeded_memory(const zero::MemoryPlan& plan,
                                               int ranks,
                                               Bytes budget);

}  // namespace dstrain::cmd
