#pragma once
#include <exception>
#include <string>

namespace dstrain {

/// Returns a message for an exception that is not an Error. If the system cannot start a thread or
/// allocate memory, it names the limit; for nlohmann/json, it is the text without the class name.
std::string exception_text(const std::exception& exception);

/// Returns why fork() has failed, from its errno.
std::string why_no_process(int errno_value);

}  // namespace dstrain
