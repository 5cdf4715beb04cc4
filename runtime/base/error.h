#pragma once
#include <string>

#include <fmt/format.h>

#include "runtime/base/error_type.h"

namespace dstrain {

/// Throws Error{code} with a formatted message.
template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws Error{io} with the attempted action, its object, and the text of `errno_value`.
[[noreturn]] void fail_errno(int errno_value, const std::string& attempted);

}  // namespace dstrain

/// Always on. A failure is a bug in dstrain: throws Error{internal} with the place and the message.
#define DSTRAIN_CHECK(condition, ...)                                                          \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      ::dstrain::fail(::dstrain::ErrorCode::internal, "{}:{}: check failed: {}: {}", __FILE__, \
                      __LINE__, #condition, ::fmt::format(__VA_ARGS__));                       \
    }                                                                                          \
  } while (false)
