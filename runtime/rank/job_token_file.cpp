#include "runtime/rank/job_token_file.h"

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/deadline.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_handle.h"
#include "runtime/os/random_bytes.h"
#include "runtime/rank/worker_env.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t token_bytes = 16;
constexpr mode_t others = S_IRWXG | S_IRWXO;
constexpr double token_look_seconds = 0.05;

fs::path token_directory() {
  if (const char* const named = std::getenv(env::token_directory)) return named;
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return fs::path(home) / ".dstrain";
  fail(ErrorCode::usage,
       "neither {}, {} nor HOME is set: the ranks are on several nodes and have no directory for "
       "their shared secret",
       env::token, env::token_directory);
}

std::string file_name(const std::string& job) {
  std::string name = job;
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
    if (!plain) c = '_';
  }
  return name + ".token";
}

/// Throws unless only this user can access the open file.
void check_private(int fd, const fs::path& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) fail_errno(errno, path.string());
  if (status.st_uid == ::geteuid() && (status.st_mode & others) == 0) return;
  fail(ErrorCode::input, "{}: other users may read or write it: chmod go= {}", path.string(),
       path.string());
}

/// Called on every rank, so that none waits for one that has failed here.
void make_directory(const fs::path& directory) {
  if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    fail(ErrorCode::input, "cannot make {}: {}: let {} name a directory that all nodes share",
         directory.string(), std::strerror(errno), env::token_directory);
  }
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) fail_errno(errno, directory.string());
  check_private(fd.get(), directory);
}

/// Returns nothing while the file is missing or incomplete.
std::optional<std::string> read_token(const fs::path& path) {
  // Opening the directory makes a network filesystem ask its server.
  const UniqueFd directory(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT || errno == ESTALE) return std::nullopt;
    fail(ErrorCode::input, "{}: {}", path.string(), std::strerror(errno));
  }
  check_private(fd.get(), path);
  std::array<char, 2 * token_bytes> text{};
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got != static_cast<ssize_t>(text.size())) return std::nullopt;
  return std::string(text.data(), text.size());
}

}  // namespace

fs::path token_path(const std::string& job) {
  return token_directory() / file_name(job);
}

JobTokenFile JobTokenFile::create(const std::string& job) {
  const fs::path path = token_path(job);
  make_directory(path.parent_path());
  std::string token = to_hex(random_bytes<token_bytes>());
  const std::string fresh = fmt::format("{}.{}", path.string(), ::getpid());
  ::unlink(fresh.c_str());
  const UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                           S_IRUSR | S_IWUSR));
  if (!fd) fail_errno(errno, fmt::format("make {}", fresh));
  const bool written =
      ::write(fd.get(), token.data(), token.size()) == static_cast<ssize_t>(token.size()) &&
      ::fsync(fd.get()) == 0 && ::rename(fresh.c_str(), path.c_str()) == 0;
  if (written) return {path, std::move(token)};
  const int code = errno;
  ::unlink(fresh.c_str());
  fail_errno(code, fmt::format("write {}", path.string()));
}

JobTokenFile JobTokenFile::wait_for(const std::string& job, double timeout_seconds) {
  const fs::path path = token_path(job);
  make_directory(path.parent_path());
  Deadline deadline = Deadline::after(timeout_seconds);
  for (;;) {
    if (std::optional<std::string> token = read_token(path)) return {{}, std::move(*token)};
    if (deadline.passed()) break;
    // A network filesystem does not signal when a file appears.
    deadline.rest(token_look_seconds);
  }
  fail(ErrorCode::timeout,
       "{} did not appear within {:g} s: rank 0 makes it; is the directory the same on all nodes? "
       "Else export {}, the same random text for all",
       path.string(), timeout_seconds, env::token);
}

JobTokenFile::~JobTokenFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace dstrain
