#include "runtime/data/token_cache.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/sha256.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/random_bytes.h"
#include "runtime/os/shared_place.h"

namespace dstrain::data {
namespace {

namespace fs = std::filesystem;

fs::path variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void make_directory(const fs::path& directory) {
  if (const std::error_code error = make_directories(directory)) {
    fail(ErrorCode::io, "{}: {}; set DSTRAIN_CACHE to a directory for tokens", directory.string(),
         error.message());
  }
}

/// Waits until it holds the lock exclusively; the lock ends with the descriptor or the process.
UniqueFd lock(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) {
    fail(ErrorCode::io, "{}: {}; set DSTRAIN_CACHE to a directory for tokens", path.string(),
         std::generic_category().message(errno));
  }
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    fail(ErrorCode::io,
         "{}: cannot be locked: {}; set DSTRAIN_CACHE to a directory on another file system",
         path.string(), std::generic_category().message(errno));
  }
  return fd;
}

/// Returns a unique name even if the lock only works within a node.
fs::path temporary_beside(const fs::path& path) {
  return path.string() + ".tmp-" + to_hex(random_bytes<8>());
}

void make_whole(const fs::path& path, FunctionRef<void(const fs::path&)> make) {
  const fs::path temporary = temporary_beside(path);
  try {
    make(temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      fail_errno(errno, "rename to " + path.string());
    }
  } catch (const Error& error) {
    ::unlink(temporary.c_str());
    if (error.errno_value() != ENOSPC && error.errno_value() != EDQUOT) throw;
    fail(ErrorCode::io, "{}; set DSTRAIN_CACHE to a directory with room for tokens", error.what());
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  flush_directory(path.parent_path());
}

}  // namespace

fs::path cache_directory() {
  if (fs::path own = variable("DSTRAIN_CACHE"); !own.empty()) return own;
  if (const fs::path base = variable("XDG_CACHE_HOME"); !base.empty()) return base / "dstrain";
  if (const fs::path home = variable("HOME"); !home.empty()) return home / ".cache" / "dstrain";
  fail(ErrorCode::io, "HOME is not set; set DSTRAIN_CACHE to a directory for tokens");
}

std::string token_key(std::span<const std::byte> content, std::string_view method) {
  constexpr std::size_t chunk_bytes = std::size_t{8} << 20;
  const std::size_t chunks = (content.size() + chunk_bytes - 1) / chunk_bytes;
  std::vector<Digest> digests(chunks + 1);
  digests[0] = sha256(method);
  parallel_for(static_cast<std::int64_t>(chunks), [&](std::int64_t i) {
    const std::size_t begin = static_cast<std::size_t>(i) * chunk_bytes;
    const auto chunk = content.subspan(begin, std::min(chunk_bytes, content.size() - begin));
    digests[static_cast<std::size_t>(i) + 1] =
        sha256({reinterpret_cast<const std::uint8_t*>(chunk.data()), chunk.size()});
  });
  return to_hex(sha256({digests.data()->data(), digests.size() * sizeof(Digest)}));
}

TokenSet cached_tokens(const fs::path& directory,
                       const std::string& key,
                       FunctionRef<void(const fs::path&)> make) {
  const fs::path path = directory / (key + ".tokens");
  if (Result<TokenSet> found = TokenSet::open(path); found.ok()) return std::move(found.value());
  make_directory(directory);
  const UniqueFd alone = lock(directory / (key + ".lock"));
  if (Result<TokenSet> found = TokenSet::open(path); found.ok()) return std::move(found.value());
  make_whole(path, make);
  Result<TokenSet> made = TokenSet::open(path);
  if (!made.ok()) fail(ErrorCode::io, "{}", made.error());
  return std::move(made.value());
}

}  // namespace dstrain::data
