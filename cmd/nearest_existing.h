#pragma once
#include <filesystem>

namespace dstrain::cmd {

/// `path`, absolute, or the nearest one above it that is there: where what is missing will be made.
std::filesystem::path nearest_existing(const std::filesystem::path& path);

}  // namespace dstrain::cmd
