#pragma once
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/base/unique_handle.h"
#include "runtime/base/units.h"

/// Files in places where other users may have put something under their names.
namespace dstrain {

enum class Content { keep, drop };

/// Opens a regular file for appending, or makes it. Throws Error{io} for a symbolic link, which is
/// not followed, and for what is no file, as a FIFO, without waiting for its reader.
UniqueFd open_to_append(const std::filesystem::path& path, Content content);

/// Opens one for reading, and waits for no writer. Throws Error{io} for a symbolic link, and where
/// there is none.
UniqueFd open_to_read(const std::filesystem::path& path);

/// Whether `path` names the open file: others may have removed it, or its directory, or put another
/// in its place.
bool is_file_at(int fd, const std::filesystem::path& path);

/// A file that was made to be renamed to another name.
struct TemporaryFile {
  std::string name;
  UniqueFd fd;
};

/// Makes PATH.tmp, or PATH.tmp-RANDOM where somebody else has a file of the former name that cannot
/// be removed. What a process of ours has left there is. Throws Error{io}.
TemporaryFile make_temporary(const std::filesystem::path& path);

/// Opens a directory in which nobody else could have put anything. Throws Error{io} for a symbolic
/// link, which is not followed, and for one that is not this user's alone.
UniqueFd open_own_directory(const std::filesystem::path& path);

/// DIRECTORY/NAME and each DIRECTORY/NAME-ANYTHING of that kind, in order.
std::vector<std::filesystem::path> own_directories(const std::filesystem::path& directory,
                                                   const std::string& name);

/// The first of them. Where there is none it makes NAME, or NAME-RANDOM if somebody else has that.
/// Throws Error{io}.
std::filesystem::path own_directory(const std::filesystem::path& directory,
                                    const std::string& name);

/// Throws Error{input} where a component of `path`, or of what a link in it leads to, is a symbolic
/// link that somebody else but root has made: whose parent others may write, they could have this
/// process write wherever it may.
void refuse_foreign_link(const std::filesystem::path& path);

/// Makes a directory, and those above it, to write into; one that is there will do. Returns why it
/// cannot be made. Throws as refuse_foreign_link().
[[nodiscard]] std::error_code make_directories(const std::filesystem::path& path);

/// The same whole small text as read_text_file(), of a file that decides what runs. Throws
/// Error{input} unless it belongs to this user or to root, as does a link to it, and nobody else
/// may write it.
std::string read_trusted_text(const std::filesystem::path& path, Bytes bytes_max);

/// "alice (uid 1000)" for what belongs to another user than this process; else empty.
std::string other_owner(const std::filesystem::path& path);

}  // namespace dstrain
