#pragma once
#include <cstdint>
#include <filesystem>

namespace dstrain::offload {

/// The kind of storage a directory is on, as far as the system reports it.
enum class StorageKind : std::uint8_t {
  local,     ///< a disk of this machine: not rotating, or of an unknown kind
  rotating,  ///< a hard disk: too slow to offload to
  network,   ///< on another machine: as fast as the network
  memory,    ///< tmpfs: uses the memory that offloading should save
};

/// Throws Error{io} if the directory cannot be examined.
StorageKind storage_kind(const std::filesystem::path& directory);

/// Returns the warning to print after the directory's name; empty for a local disk.
const char* storage_warning(StorageKind kind) noexcept;

}  // namespace dstrain::offload
