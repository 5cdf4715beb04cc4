#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_handle.h"
#include "runtime/base/units.h"

namespace dstrain {

/// Whether something has the name, if only a symbolic link to nothing, which open_regular() names.
bool is_there(const std::filesystem::path& path);

/// `path`, absolute, or the nearest one above it that is there: where what is missing will be made.
std::filesystem::path nearest_existing(const std::filesystem::path& path);

/// Opens a regular file for reading. Throws Error{input} when it is missing, something else, or a
/// pointer of Git LFS.
UniqueFd open_regular(const std::filesystem::path& path);

/// The whole of a small text file. Throws Error{input} when it is missing, no regular file, or
/// larger than `bytes_max`.
std::string read_text_file(const std::filesystem::path& path, Bytes bytes_max);

/// Writes `text` to a new file beside `path`, flushes it to disk and renames it over `path`: a
/// reader sees the old file or the new one, whole. Throws Error{io} and then leaves nothing behind.
void write_text_file(const std::filesystem::path& path, std::string_view text);

/// The paths that a pattern of the shell's matches, "data/*.bin", sorted. Throws Error{input} when
/// there is none.
std::vector<std::string> paths_matching(const std::string& pattern);

/// The same of any pattern, of which there may be none. `flags`: of glob(3).
std::vector<std::string> any_paths_matching(const std::string& pattern, int flags = 0);

/// Opens a directory for open_beneath. Throws Error{input}.
UniqueFd open_directory(const std::filesystem::path& path);

/// Opens `path`, relative to a directory, for reading, and waits for no writer. No part of it may
/// be a symbolic link, so that a path without ".." stays beneath the directory. `name` is for
/// messages. Throws Error{input}.
UniqueFd open_beneath(int directory, const std::string& path, const std::string& name);

}  // namespace dstrain
