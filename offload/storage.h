#pragma once
#include <cstdint>
#include <filesystem>

namespace dstrain::offload {

/// What a directory lies on, as far as the system tells.
enum class StorageKind : std::uint8_t {
  local,     ///< a disk of this machine that does not rotate, or one of an unknown kind
  rotating,  ///< a hard disk: too slow to offload to
  network,   ///< another machine's: its speed is the network's
  memory,    ///< tmpfs: takes the memory that offloading is to save
};

/// Throws Error{io} when the directory cannot be looked at.
StorageKind storage_kind(const std::filesystem::path& directory);

/// What to warn of, after the directory's name; empty for a local disk.
const char* storage_warning(StorageKind kind) noexcept;

}  // namespace dstrain::offload
