#pragma once
#include <filesystem>

#include "runtime/checkpoint/manifest.h"

namespace dstrain::checkpoint {

/// Reads and checks the manifest of the checkpoint `path`, opened as `directory`. Throws
/// Error{input}.
Manifest read_manifest(int directory, const std::filesystem::path& path);

}  // namespace dstrain::checkpoint
