#pragma once
#include <filesystem>

#include "runtime/base/unique_handle.h"
#include "runtime/base/units.h"

namespace dstrain::offload {

/// A file in `directory` that has no name: nothing is left of it however the process ends, and no
/// other finds it. All its space is taken; it reads as zeros. Throws Error{io} that names the
/// directory when it is missing, cannot be written to, or has too little room; with both sizes in
/// the last case.
UniqueFd make_nameless_file(const std::filesystem::path& directory, Bytes bytes);

}  // namespace dstrain::offload
