#pragma once
#include <string>

#include "runtime/base/error.h"

namespace dstrain::comm {

/// Why a group may not go on: what one of its ranks has told the others.
struct GroupFailure {
  ErrorCode code = ErrorCode::comm;
  std::string why;
};

/// Throws it in a rank that is `doing` something. An abort says nothing of what it interrupts.
[[noreturn]] inline void throw_failure(const GroupFailure& failure, const std::string& doing) {
  throw Error(failure.code,
              failure.code == ErrorCode::aborted ? doing + ": " + failure.why : failure.why);
}

}  // namespace dstrain::comm
