#include "runtime/checkpoint/checked_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/check.h"
#include "runtime/base/fd_io.h"
#include "runtime/checkpoint/catalog.h"

namespace dstrain::checkpoint {
namespace {

constexpr auto chunk_size = static_cast<std::size_t>(chunk_bytes);
constexpr std::size_t piece_size = 4 * chunk_size;  ///< is still in the cache when it is hashed
constexpr int safe_flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

[[noreturn]] void fail_open(int error, const std::string& name) {
  if (error == ENOENT) fail(ErrorCode::input, "{}: missing", name);
  if (error == ELOOP) fail(ErrorCode::input, "{}: a symbolic link, which is not followed", name);
  fail(ErrorCode::input, "{}: {}", name, std::strerror(error));
}

[[noreturn]] void fail_size(const std::string& name, Bytes found, Bytes expected) {
  fail(ErrorCode::input, "{}: {}: has {} bytes, {} expected", name,
       found < expected ? "truncated" : "too long", found, expected);
}

}  // namespace

UniqueFd open_directory(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) fail_open(errno, path.string());
  return fd;
}

UniqueFd open_beneath(int directory, const std::string& path, const std::string& name) {
  UniqueFd parent;
  std::size_t begin = 0;
  for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', begin)) {
    const std::string step = path.substr(begin, end - begin);
    UniqueFd next(
        ::openat(parent ? parent.get() : directory, step.c_str(), safe_flags | O_DIRECTORY));
    if (!next) fail_open(errno, name);
    parent = std::move(next);
    begin = end + 1;
  }
  UniqueFd fd(::openat(parent ? parent.get() : directory, path.substr(begin).c_str(), safe_flags));
  if (!fd) fail_open(errno, name);
  return fd;
}

Manifest read_manifest(int directory, const std::filesystem::path& path) {
  const std::string name = (path / manifest_name).string();
  const UniqueFd fd = open_beneath(directory, manifest_name, name);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail_errno(errno, "stat " + name);
  if (!S_ISREG(info.st_mode)) fail(ErrorCode::input, "{}: not a regular file", name);
  if (info.st_size > manifest_bytes_max) {
    fail(ErrorCode::input, "{}: {} is more than the {} allowed for a manifest", name,
         format_bytes(info.st_size), format_bytes(manifest_bytes_max));
  }
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  text.resize(read_fully_at(fd.get(), 0, std::as_writable_bytes(std::span(text)), name));
  Manifest manifest = parse_manifest(text, name);
  const auto step = step_of(path.filename().string());
  if (step && *step != manifest.step) {
    fail(ErrorCode::input, "{}: is of step {}; was the directory renamed?", name, manifest.step);
  }
  return manifest;
}

CheckedFile::CheckedFile(int directory, const FileRecord& record, std::string name)
    : record_(record), name_(std::move(name)), fd_(open_beneath(directory, record.path, name_)) {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) fail_errno(errno, "stat " + name_);
  if (!S_ISREG(info.st_mode)) fail(ErrorCode::input, "{}: not a regular file", name_);
  if (info.st_size != record.bytes) fail_size(name_, info.st_size, record.bytes);
}

void CheckedFile::read(std::size_t first, std::span<std::byte> bytes) const {
  std::size_t chunk = first;
  while (!bytes.empty()) {
    std::span<std::byte> piece = bytes.first(std::min(bytes.size(), piece_size));
    bytes = bytes.subspan(piece.size());
    const std::size_t offset = chunk * chunk_size;
    const std::size_t got = read_fully_at(fd_.get(), offset, piece, name_);
    if (got < piece.size()) fail_size(name_, static_cast<Bytes>(offset + got), record_.bytes);
    for (; !piece.empty(); ++chunk) {
      const auto one = piece.first(std::min(piece.size(), chunk_size));
      const Checksum found = checksum_of(one);
      if (found != record_.chunks.at(chunk)) {
        fail(ErrorCode::input,
             "{}: damaged at byte {} (chunk of {} bytes): checksum {} expected, {} found", name_,
             chunk * chunk_size, one.size(), to_text(record_.chunks[chunk]), to_text(found));
      }
      piece = piece.subspan(one.size());
    }
  }
}

void CheckedFile::verify() const {
  const auto file_size = static_cast<std::size_t>(record_.bytes);
  std::vector<std::byte> buffer(std::min(file_size, piece_size));
  for (std::size_t done = 0; done < file_size; done += piece_size) {
    read(done / chunk_size, std::span(buffer).first(std::min(piece_size, file_size - done)));
  }
}

}  // namespace dstrain::checkpoint
