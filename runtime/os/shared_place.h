#pragma once
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/base/unique_handle.h"
#include "runtime/base/units.h"

/// Opens and creates files in places where other users may have put something under the same names.
namespace dstrain {

enum class Content { keep, drop };

/// Opens a regular file for appending, or creates it. Throws Error{io} for a symbolic link, which
/// is not followed, and for anything but a file; a FIFO does not make it wait for a reader.
UniqueFd open_to_append(const std::filesystem::path& path, Content content);

/// Opens a regular file for reading, without waiting for a writer. Throws Error{io} for a symbolic
/// link, and if there is no file.
UniqueFd open_to_read(const std::filesystem::path& path);

/// Whether `path` still names the open file: others may have removed it, or its directory, or
/// replaced it.
bool is_file_at(int fd, const std::filesystem::path& path);

/// A file that will be renamed to its final name.
struct TemporaryFile {
  std::string name;
  UniqueFd fd;
};

/// Creates PATH.tmp, or PATH.tmp-RANDOM if another user's file has the former name and cannot be
/// removed. Removes a leftover of our own. Throws Error{io}.
TemporaryFile make_temporary(const std::filesystem::path& path);

/// Opens a directory to which no other user can have added anything. Throws Error{io} for a
/// symbolic link, which is not followed, and for one that is not only this user's.
UniqueFd open_own_directory(const std::filesystem::path& path);

/// Returns DIRECTORY/NAME and each DIRECTORY/NAME-ANYTHING that open_own_directory() accepts, in
/// order.
std::vector<std::filesystem::path> own_directories(const std::filesystem::path& directory,
                                                   const std::string& name);

/// Returns the first of them. If there is none, creates NAME, or NAME-RANDOM if another user has
/// NAME. Throws Error{io}.
std::filesystem::path own_directory(const std::filesystem::path& directory,
                                    const std::string& name);

/// Throws Error{input} if a component of `path`, or of the target of a link in it, is a symbolic
/// link made by a user other than this one and root. Users who may write its parent could otherwise
/// redirect the writes of this process.
void refuse_foreign_link(const std::filesystem::path& path);

/// Creates a directory and its parents, to write into; it may exist. Returns the error if it cannot
/// be created. Throws as refuse_foreign_link().
[[nodiscard]] std::error_code make_directories(const std::filesystem::path& path);

/// Returns the text as read_text_file(), for a small file that decides what is executed. Throws
/// Error{input} unless it, and any link to it, belongs to this user or root, and no other user may
/// write it.
std::string read_trusted_text(const std::filesystem::path& path, Bytes bytes_max);

/// Returns "alice (uid 1000)" for a path that belongs to a user other than this process's; else
/// empty.
std::string other_owner(const std::filesystem::path& path);

}  // namespace dstrain
