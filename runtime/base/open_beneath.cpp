#include "runtime/base/open_beneath.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>

#include "runtime/base/error.h"

namespace dstrain {
namespace {

constexpr int safe_flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

[[noreturn]] void fail_open(int error, const std::string& name) {
  if (error == ENOENT) fail(ErrorCode::input, "{}: missing", name);
  if (error == ELOOP) {
    fail(ErrorCode::input, "{}: a symbolic link, which is not followed; copy what it stands for",
         name);
  }
  fail(ErrorCode::input, "{}: {}", name, std::strerror(error));
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

}  // namespace dstrain
