#pragma once
#include <string>
#include <string_view>

namespace dstrain {

/// Sends log lines of this process to stderr as "dstrain: level: message". `level` is one of debug,
/// info, warning, error. Call once from main.
void start_log(const std::string& level);

void log_info(std::string_view message);
void log_warning(std::string_view message);
void log_error(std::string_view message);

/// Makes an uncaught exception, such as one on another thread, log the rank and its type and exit
/// with status::failed. Call once from main.
void log_uncaught_exceptions();

}  // namespace dstrain
