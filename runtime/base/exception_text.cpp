#include "runtime/base/exception_text.h"

#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace dstrain {

std::string exception_text(const std::exception& exception) {
  const auto* const error = dynamic_cast<const std::system_error*>(&exception);
  if (error == nullptr || error->code() != std::errc::resource_unavailable_try_again) {
    // "[json.exception.parse_error.101] parse error ..."
    const std::string_view what = exception.what();
    const std::size_t name = what.starts_with("[json.exception.") ? what.find("] ") : what.npos;
    return std::string(name == what.npos ? what : what.substr(name + 2));
  }
  return fmt::format(
      "{}: the system starts no more threads; raise ulimit -u, or pids.max of the control group",
      exception.what());
}

}  // namespace dstrain
