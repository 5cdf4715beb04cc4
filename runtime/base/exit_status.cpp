#include "runtime/base/exit_status.h"

namespace dstrain {

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
    case ErrorCode::config:
    case ErrorCode::input:
    case ErrorCode::newer_format:
      return status::bad_input;
    case ErrorCode::remote:
      return status::could_not_launch;
    case ErrorCode::timeout:
      return status::timed_out;
    case ErrorCode::unsaved:
      return status::unsaved;
    default:
      return status::failed;
  }
}

}  // namespace dstrain
