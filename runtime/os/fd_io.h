#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "runtime/base/unique_handle.h"
#include "runtime/base/units.h"

/// Wrappers of read(2), write(2) and similar calls that handle interruptions and short counts.
/// `name` is for messages; a failure throws Error{io}.
namespace dstrain {

void write_fully(int fd, std::span<const std::byte> bytes, const std::string& name);
void write_fully_at(int fd,
                    std::uint64_t offset,
                    std::span<const std::byte> bytes,
                    const std::string& name);

/// Returns the number of bytes read: less than asked for at the end of the file.
std::size_t read_fully_at(int fd,
                          std::uint64_t offset,
                          std::span<std::byte> bytes,
                          const std::string& name);

/// Returns the size of an open file. Throws Error{input} if it is not a regular one.
Bytes regular_bytes(int fd, const std::string& name);

/// Returns the whole text of an open file. Throws Error{input} if it is not a regular one, or
/// larger than `bytes_max`.
std::string read_small_text(int fd, Bytes bytes_max, const std::string& name);

/// Reserves the space for a file of this size. Returns an errno, or 0; EOPNOTSUPP if the file
/// system cannot.
int take_space(int fd, Bytes bytes) noexcept;
/// The same, so that a full disk is found before anything is written. If the file system cannot
/// reserve, the writes will report it.
void reserve_space(int fd, Bytes bytes, const std::string& name);

void flush_file(int fd, const std::string& name);

/// Makes the names in a directory survive a power cut. If the file system cannot (EINVAL, ENOTSUP:
/// some SMB, 9p and vboxsf), the first call of a process warns, and all return.
void flush_directory(const std::filesystem::path& directory);

/// Closes a file that was written: some file systems report a failed write only here.
void close_file(UniqueFd fd, const std::string& name);

}  // namespace dstrain
