#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.h"

namespace dstrain::checkpoint {

/// What lies in a checkpoint's directory without being in its manifest: paths within it in order, a
/// directory with a '/' at its end and without what is in it. Throws Error{input} when the
/// directory cannot be listed.
std::vector<std::string> find_foreign(const std::filesystem::path& directory,
                                      const Manifest& manifest);

}  // namespace dstrain::checkpoint
