#pragma once
#include <span>
#include <string>

#include "runtime/comm/control/control_group.h"

namespace dstrain::comm {

/// Compares `own`, lines that describe the settings of this rank, with those of the other ranks,
/// because each may have been started by hand. Throws Error{config} on every rank, with the first
/// line that only one of two ranks has. Collective.
void require_alike_ranks(std::span<const std::string> own, ControlGroup& control);

}  // namespace dstrain::comm
