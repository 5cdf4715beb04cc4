#include "runtime/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "runtime/base/error.h"

namespace dstrain {

void start_log(const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off) {
    fail(ErrorCode::usage, "log level \"{}\": use debug, info, warning or error", level);
  }
  auto logger = spdlog::stderr_logger_mt("dstrain");
  logger->set_pattern("dstrain: %l: %v");
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
}

void log_info(std::string_view message) {
  spdlog::info("{}", message);
}
void log_warning(std::string_view message) {
  spdlog::warn("{}", message);
}
void log_error(std::string_view message) {
  spdlog::error("{}", message);
}

}  // namespace dstrain
