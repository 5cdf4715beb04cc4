#include "runtime/os/visibility.h"

#include <chrono>
#include <thread>

#include <fcntl.h>

#include "runtime/base/deadline.h"
#include "runtime/base/unique_handle.h"

namespace dstrain {

bool await_visible(const std::filesystem::path& directory,
                   double seconds,
                   FunctionRef<bool()> is_there) {
  Deadline deadline = Deadline::after(seconds);
  while (!is_there()) {
    if (deadline.passed()) return false;
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
