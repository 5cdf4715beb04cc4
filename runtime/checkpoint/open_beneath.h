#pragma once
#include <filesystem>
#include <string>

#include "runtime/base/unique_fd.h"
#include "runtime/base/units.h"

namespace dstrain::checkpoint {

/// Opens a checkpoint's directory for open_beneath. Throws Error{input}.
UniqueFd open_directory(const std::filesystem::path& path);

/// Opens `path` for reading without following a symbolic link on the way, so that nothing outside
/// the directory is reached. `name` is for messages. Throws Error{input}.
UniqueFd open_beneath(int directory, const std::string& path, const std::string& name);

/// The size of an open file. Throws Error{input} when it is no regular one.
Bytes regular_bytes(int fd, const std::string& name);

}  // namespace dstrain::checkpoint
