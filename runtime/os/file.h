#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_handle.h"
#include "runtime/base/units.h"

namespace dstrain {

/// Whether the name exists, even as a dangling symbolic link, which open_regular() reports.
bool is_there(const std::filesystem::path& path);

/// Returns `path`, absolute, or its nearest existing parent, in which missing directories would be
/// created.
std::filesystem::path nearest_existing(const std::filesystem::path& path);

/// Opens a regular file for reading. Throws Error{input} if it is missing, not a regular file, or a
/// pointer of Git LFS.
UniqueFd open_regular(const std::filesystem::path& path);

/// Returns the whole text of a small file. Throws Error{input} if it is missing, not a regular
/// file, or larger than `bytes_max`.
std::string read_text_file(const std::filesystem::path& path, Bytes bytes_max);

/// Writes `text` to a new file beside `path`, flushes it to disk and renames it to `path`: a reader
/// sees the whole old or new file. On failure, removes the new file and throws Error{io}.
void write_text_file(const std::filesystem::path& path, std::string_view text);

/// Returns the paths that match a shell pattern, "data/*.bin", sorted. Throws Error{input} if there
/// are none.
std::vector<std::string> paths_matching(const std::string& pattern);

/// The same for any pattern; there may be no match. `flags`: of glob(3).
std::vector<std::string> any_paths_matching(const std::string& pattern, int flags = 0);

/// Opens a directory for open_beneath. Throws Error{input}.
UniqueFd open_directory(const std::filesystem::path& path);

/// Opens `path`, relative to a directory, for reading, without waiting for a writer. No part of it
/// may be a symbolic link, so that a path without ".." stays in the directory. `name` is for
/// messages. Throws Error{input}.
UniqueFd open_beneath(int directory, const std::string& path, const std::string& name);

}  // namespace dstrain
