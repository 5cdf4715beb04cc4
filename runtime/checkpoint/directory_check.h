#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.h"

namespace dstrain::checkpoint {

/// What lies in a checkpoint's directory without being in its manifest, a line each.
std::vector<std::string> find_extras(const std::filesystem::path& directory,
                                     const Manifest& manifest);

}  // namespace dstrain::checkpoint
