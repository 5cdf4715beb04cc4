#pragma once
#include <exception>
#include <string>

namespace dstrain {

/// What an exception that is no Error says to people: of a thread that the system does not start,
/// or of memory that it does not give, which limit that is; of nlohmann/json its text without the
/// name of its class.
std::string exception_text(const std::exception& exception);

/// Why fork() has failed, by its errno.
std::string why_no_process(int errno_value);

}  // namespace dstrain
