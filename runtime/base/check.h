#pragma once
#include "runtime/base/error.h"

/// Always on. A failure is a bug in dstrain: throws Error{internal} with the place and the message.
#define DSTRAIN_CHECK(condition, ...)                                                          \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      ::dstrain::fail(::dstrain::ErrorCode::internal, "{}:{}: check failed: {}: {}", __FILE__, \
                      __LINE__, #condition, ::fmt::format(__VA_ARGS__));                       \
    }                                                                                          \
  } while (false)
