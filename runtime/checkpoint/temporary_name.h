#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/os/process_identity.h"

namespace dstrain::checkpoint {

/// The owner of a temporary directory.
struct Owner {
  std::string host;
  std::string boot;  ///< the first half of the kernel's boot id; empty: not known
  ProcessIdentity process;
};

Owner this_owner();

/// Returns a name for a directory that is being made or removed, which does not look like a
/// checkpoint: "checkpoint-12.tmp-HOST-BOOT-SPACE-PID-START-ATTEMPT", where SPACE is the inode of
/// the pid namespace.
std::string temporary_name(std::int64_t step, const Owner& owner, int attempt);

/// Returns the owner of the directory; nothing if it has no such name.
std::optional<Owner> owner_of(std::string_view name);

/// Whether the owner is a process of this host that has ended or is of an earlier boot. False if
/// that is not known.
bool has_ended(const Owner& owner);

/// Renames a directory within `output` to a temporary name of this process, which it returns;
/// nothing if the file system cannot rename the directory, as overlayfs for one of a lower layer.
/// Throws Error{io}.
std::optional<std::filesystem::path> move_aside(const std::filesystem::path& output,
                                                const std::filesystem::path& directory,
                                                std::int64_t step);

/// Removes a checkpoint that cannot be moved aside. Removes its manifest first, so that the rest is
/// not taken for a whole one. Throws Error{io}.
void remove_in_place(const std::filesystem::path& directory);

}  // namespace dstrain::checkpoint
