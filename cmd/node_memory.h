#pragma once
#include <string>

#include "zero/memory_plan.h"

namespace dstrain::cmd {

/// How far `ranks` ranks of this machine, planned alike, exceed its memory: "2 rank(s) of this
/// machine need ... and ..."; empty where they fit, or the kernel does not say what there is.
/// `budget`: what they may take together (--host_memory); 0: what is available now.
std::string exceeded_memory(const zero::MemoryPlan& plan, int ranks, Bytes budget);

}  // namespace dstrain::cmd
