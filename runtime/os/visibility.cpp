#include "runtime/os/visibility.h"

#include <chrono>
#include <thread>

#include <fcntl.h>

#include <fmt/format.h>

#include "runtime/base/deadline.h"
#include "runtime/base/log.h"
#include "runtime/base/unique_handle.h"

namespace dstrain {
namespace {

constexpr double quiet_seconds = 3;

}  // namespace

bool await_visible(const std::filesystem::path& directory,
                   double seconds,
                   FunctionRef<bool()> is_there) {
  Deadline deadline = Deadline::after(seconds);
  Deadline quiet = Deadline::after(quiet_seconds);
  for (bool told = false; !is_there();) {
    if (deadline.passed()) return false;
    if (!told && quiet.passed()) {
      told = true;
      log_warning(fmt::format(
          "waiting up to {:.0f} s for {} to show what another host has written there; the hosts "
          "must share that directory",
          seconds, directory.string()));
    }
    deadline.slice(0, [&] { look_again(directory); });
  }
  return true;
}

void look_again(const std::filesystem::path& directory) {
  constexpr std::chrono::milliseconds interval{200};
  std::this_thread::sleep_for(interval);
  const UniqueFd asks_the_server(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

}  // namespace dstrain
