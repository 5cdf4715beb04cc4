#pragma once
#include <string>

#include "runtime/base/sha256.h"

namespace dstrain {

/// The id that the kernel gives to each boot, in its own writing; empty: not known.
std::string boot_id();

/// Alike for processes that reach each other on loopback, and for no others: those of one running
/// kernel and one network namespace. Never all zeros.
Digest machine_identity();

}  // namespace dstrain
