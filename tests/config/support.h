#pragma once
#include <functional>
#include <string>

#include "runtime/base/error.h"

namespace dstrain::test {

/// The message of the Error that `action` throws; "no error" when it throws none.
inline std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace dstrain::test
