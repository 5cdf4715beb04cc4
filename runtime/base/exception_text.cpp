#include "runtime/base/exception_text.h"

#include <system_error>

#include <fmt/format.h>

namespace dstrain {

std::string exception_text(const std::exception& exception) {
  const auto* const error = dynamic_cast<const std::system_error*>(&exception);
  if (error == nullptr || error->code() != std::errc::resource_unavailable_try_again) {
    return exception.what();
  }
  return fmt::format(
      "{}: the system starts no more threads; raise ulimit -u, or pids.max of the control group",
      exception.what());
}

}  // namespace dstrain
