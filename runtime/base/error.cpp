#include "runtime/base/error.h"

#include <system_error>

namespace dstrain {

void fail_errno(int errno_value, const std::string& attempted) {
  throw Error(ErrorCode::io,
              fmt::format("{}: {}", attempted, std::generic_category().message(errno_value)),
              errno_value);
}

}  // namespace dstrain
