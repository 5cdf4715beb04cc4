#pragma once
#include "runtime/base/error.h"

namespace dstrain {

/// Exit statuses of launcher and ranks.
namespace status {
inline constexpr int done = 0;
inline constexpr int failed = 1;
inline constexpr int bad_input = 2;         ///< usage, config, hostfile, data or model file
inline constexpr int could_not_launch = 3;  ///< host or MASTER_ADDR unreachable, program missing
inline constexpr int timed_out = 4;         ///< rendezvous or collective
inline constexpr int unsaved = 74;  ///< trained to the end, but some of the results are not written
inline constexpr int stopped_with_checkpoint = 75;
inline constexpr int interrupted = 130;
}  // namespace status

/// Returns the exit status of a process that ends with an error of this kind.
constexpr int exit_status(ErrorCode code) {
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
