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

/// From now on an exception that nobody catches, as one on a thread of its own, is logged with
/// the rank and its type and ends the process with status::failed. Call once from main.
void log_uncaught_exceptions();

}  // namespace dstrain
