#pragma once
#include <string>

#include "runtime/base/error.h"

namespace dstrain::test {

/// The message of the Error that `action` throws, or "".
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace dstrain::test
