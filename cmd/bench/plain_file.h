#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

namespace dstrain::bench {

/// What a disk can do: takes the space, writes the bytes in pieces and flushes them. Throws
/// Error{io}.
void write_plainly(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// Reads the whole file in pieces.
void read_plainly(const std::filesystem::path& path, std::span<std::byte> bytes);

/// Makes the system forget what it keeps in memory of a file that is flushed.
void forget_pages(const std::filesystem::path& path);

}  // namespace dstrain::bench
