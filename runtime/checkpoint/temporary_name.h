#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/os/process_identity.h"

namespace dstrain::checkpoint {

/// Whose a temporary directory is.
struct Owner {
  std::string host;
  std::string boot;  ///< the first half of the kernel's boot id; empty: not known
  ProcessIdentity process;
};

Owner this_owner();

/// A name for a directory that is being made or removed: "checkpoint-12.tmp-HOST-BOOT-SPACE-PID-
/// START-ATTEMPT", of which SPACE is the inode of the pid namespace. Nobody takes it for a
/// checkpoint.
std::string temporary_name(std::int64_t step, const Owner& owner, int attempt);

/// Whose directory this is; nothing when it is no such name.
std::optional<Owner> owner_of(std::string_view name);

/// Whether the owner is a process that has ended: one of this host, of an earlier boot or gone.
/// False when that is not known.
bool has_ended(const Owner& owner);

/// Renames a directory within `output` to a temporary name of this process, which it returns;
/// nothing where the file system renames no such directory, as overlayfs those of a lower layer.
/// Throws Error{io}.
std::optional<std::filesystem::path> move_aside(const std::filesystem::path& output,
                                                const std::filesystem::path& directory,
                                                std::int64_t step);

/// Removes a checkpoint that cannot be moved aside: its manifest first, so that no half of it is
/// taken for whole, then the rest. Throws Error{io}.
void remove_in_place(const std::filesystem::path& directory);

}  // namespace dstrain::checkpoint
