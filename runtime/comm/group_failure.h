#pragma once
#include <string>

#include "runtime/base/error.h"

namespace dstrain::comm {

/// The failure of a group, as one of its ranks has told the others.
struct GroupFailure {
  ErrorCode code = ErrorCode::comm;
  std::string why;
};

/// Throws `failure` in a rank that is `doing` something. An abort does not mention the operation
/// that it interrupts.
[[noreturn]] inline void throw_failure(const GroupFailure& failure, const std::string& doing) {
  throw Error(failure.code,
              failure.code == ErrorCode::aborted ? doing + ": " + failure.why : failure.why);
}

}  // namespace dstrain::comm
