#include "runtime/base/exception_text.h"

#include <cerrno>
#include <fstream>
#include <new>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include <sys/resource.h>

#include <fmt/format.h>

#include "runtime/base/units.h"

namespace dstrain {
namespace {

/// Returns the limit of ulimit -v; none: unlimited.
std::optional<Bytes> address_space_limit() {
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? std::optional(static_cast<Bytes>(limit.rlim_cur)) : std::nullopt;
}

/// Returns the largest address space that this process has had.
Bytes address_space_peak() {
  std::ifstream lines("/proc/self/status");
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("VmPeak:")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    Bytes kibibytes = 0;
    words >> kibibytes;
    return kibibytes * kibibyte;
  }
  return 0;
}

/// Returns the default stack size of a thread.
Bytes stack_bytes() {
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? static_cast<Bytes>(limit.rlim_cur) : 8 * mebibyte;
}

/// Root is limited only by the control group.
std::string process_limit_remedy() {
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? fmt::format(
                       "raise ulimit -u, which allows {} processes and threads of this "
                       "user, or pids.max of the control group",
                       limit.rlim_cur)
                 : "raise pids.max of the control group, as no ulimit -u is set";
}

/// Returns the limit of ulimit -v if there is no room for a thread's stack; none: there is room.
std::optional<Bytes> used_up_limit() {
  const auto limit = address_space_limit();
  return limit && address_space_peak() + stack_bytes() >= *limit ? limit : std::nullopt;
}

/// Explains the messages of libraries that cannot allocate memory.
std::string full_space_remark() {
  const auto limit = used_up_limit();
  return limit ? fmt::format(" (perhaps as ulimit -v, {}, leaves no room; raise it)",
                             format_bytes(*limit))
               : "";
}

/// pthread_create() also returns EAGAIN if there is no room for a stack.
std::string why_no_thread() {
  if (const auto limit = used_up_limit()) {
    return fmt::format("ulimit -v, {}, leaves no room for another thread's stack; raise it",
                       format_bytes(*limit));
  }
  return "the system starts no more threads; " + process_limit_remedy();
}

std::string why_no_memory() {
  const auto limit = address_space_limit();
  if (!limit) return "the machine is out of memory";
  return fmt::format("out of memory: ulimit -v allows this process {}; raise it",
                     format_bytes(*limit));
}

}  // namespace

std::string why_no_process(int errno_value) {
  const std::string text =
      fmt::format("cannot fork: {}", std::generic_category().message(errno_value));
  return errno_value == EAGAIN ? text + ": " + process_limit_remedy() : text;
}

std::string exception_text(const std::exception& exception) {
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) return why_no_memory();
  const auto* const error = dynamic_cast<const std::system_error*>(&exception);
  if (error == nullptr || error->code() != std::errc::resource_unavailable_try_again) {
    // "[json.exception.parse_error.101] parse error ..."
    const std::string_view what = exception.what();
    const std::size_t name = what.starts_with("[json.exception.") ? what.find("] ") : what.npos;
    return std::string(name == what.npos ? what : what.substr(name + 2)) + full_space_remark();
  }
  return fmt::format("{}: {}", exception.what(), why_no_thread());
}

}  // namespace dstrain
