#pragma once
#include <string>

#include "runtime/base/sha256.h"

namespace dstrain {

/// Returns the kernel's id of the current boot, in its own format; empty: unknown.
std::string boot_id();

/// Returns a digest that is equal exactly for processes that reach each other on loopback: those of
/// one running kernel and one network namespace. Never all zeros.
Digest machine_identity();

}  // namespace dstrain
