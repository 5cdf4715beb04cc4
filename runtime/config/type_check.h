#pragma once
#include "runtime/config/schema_check.h"

namespace dstrain::config {

/// Checks optimizer and scheduler: the type is known and built, its parameters belong to it, and
/// those with a shape of their own (betas) are right.
void check_types(const CheckedValues& values, Problems& problems);

}  // namespace dstrain::config
