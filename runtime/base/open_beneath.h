#pragma once
#include <filesystem>
#include <string>

#include "runtime/base/unique_fd.h"

namespace dstrain {

/// Opens a directory for open_beneath. Throws Error{input}.
UniqueFd open_directory(const std::filesystem::path& path);

/// Opens `path`, relative to a directory, for reading, and waits for no writer. No part of it may
/// be a symbolic link, so that a path without ".." stays beneath the directory. `name` is for
/// messages. Throws Error{input}.
UniqueFd open_beneath(int directory, const std::string& path, const std::string& name);

}  // namespace dstrain
