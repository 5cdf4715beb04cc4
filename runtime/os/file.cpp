#include "runtime/os/file.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>

#include "runtime/os/fd_io.h"
#include "runtime/os/shared_place.h"

namespace dstrain {
namespace {

constexpr int reading_flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

[[noreturn]] void fail_open(int error, const std::string& name) {
  if (error == ENOENT) fail(ErrorCode::input, "{}: missing", name);
  if (error == ELOOP) {
    fail(ErrorCode::input, "{}: a symbolic link, which is not followed; copy its target instead",
         name);
  }
  fail(ErrorCode::input, "{}: {}", name, std::strerror(error));
}

/// Refuses the small file that `git clone` leaves for a large one without Git LFS.
void refuse_lfs_pointer(int fd, const std::string& name) {
  constexpr std::string_view begin = "version https://git-lfs.github.com/spec/";
  std::array<char, begin.size()> bytes{};
  const std::size_t count = read_fully_at(fd, 0, std::as_writable_bytes(std::span(bytes)), name);
  if (std::string_view(bytes.data(), count) != begin) return;
  fail(ErrorCode::input,
       "{}: is a pointer of Git LFS, not the file itself; in its repository: git lfs pull", name);
}

}  // namespace

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::symlink_status(path, ignored).type() !=
         std::filesystem::file_type::not_found;
}

std::filesystem::path nearest_existing(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path there = fs::absolute(path, ignored);
  while (there.has_relative_path() &&
         fs::status(there, ignored).type() == fs::file_type::not_found) {
    there = there.parent_path();
  }
  return there;
}

UniqueFd open_regular(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    const int error = errno;
    std::error_code no_link;
    const std::filesystem::path target = std::filesystem::read_symlink(path, no_link);
    fail(ErrorCode::input, "{}: {}", path.string(),
         no_link || error != ENOENT
             ? std::strerror(error)
             : "a symbolic link to " + target.string() + ", which is not there");
  }
  regular_bytes(fd.get(), path.string());
  refuse_lfs_pointer(fd.get(), path.string());
  return fd;
}

std::string read_text_file(const std::filesystem::path& path, Bytes bytes_max) {
  return read_small_text(open_regular(path).get(), bytes_max, path.string());
}

void write_text_file(const std::filesystem::path& path, std::string_view text) {
  const TemporaryFile temporary = make_temporary(path);
  try {
    write_fully(temporary.fd.get(), std::as_bytes(std::span(text)), temporary.name);
    flush_file(temporary.fd.get(), temporary.name);
    if (::rename(temporary.name.c_str(), path.c_str()) != 0)
      fail_errno(errno, "rename to " + path.string());
  } catch (...) {
    ::unlink(temporary.name.c_str());
    throw;
  }
}

std::vector<std::string> paths_matching(const std::string& pattern) {
  if (pattern.find("**") != pattern.npos) {
    fail(ErrorCode::input, "{}: ** is not supported in a pattern; one * matches one name", pattern);
  }
  std::vector<std::string> paths = any_paths_matching(pattern);
  if (paths.empty()) fail(ErrorCode::input, "{}: no such file", pattern);
  return paths;
}

std::vector<std::string> any_paths_matching(const std::string& pattern, int flags) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), flags, nullptr, &found);
  std::vector<std::string> paths;
  for (std::size_t i = 0; status == 0 && i < found.gl_pathc; ++i) {
    paths.emplace_back(found.gl_pathv[i]);  // NOLINT(*-pointer-arithmetic)
  }
  ::globfree(&found);
  return paths;
}

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
        ::openat(parent ? parent.get() : directory, step.c_str(), reading_flags | O_DIRECTORY));
    if (!next) fail_open(errno, name);
    parent = std::move(next);
    begin = end + 1;
  }
  UniqueFd fd(
      ::openat(parent ? parent.get() : directory, path.substr(begin).c_str(), reading_flags));
  if (!fd) fail_open(errno, name);
  return fd;
}

}  // namespace dstrain
