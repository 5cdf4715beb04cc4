#include "runtime/base/log.h"

#include <cstdlib>
#include <exception>
#include <typeinfo>

#include <cxxabi.h>
#include <unistd.h>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/base/exception_text.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/printable.h"

namespace dstrain {
namespace {

/// Returns "std::bad_alloc".
std::string name_of(const std::type_info& type) {
  int status = 0;
  char* const name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string text = status == 0 ? name : type.name();
  std::free(name);
  return text;
}

/// Returns the type and the text of the current exception.
std::string describe_exception() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "std::terminate was called";
  try {
    throw;
  } catch (const std::exception& error) {
    return fmt::format("{}: {}", name_of(*type), exception_text(error));
  } catch (...) {
    return name_of(*type);
  }
}

[[noreturn]] void end_by_exception() noexcept {
  const char* const rank = std::getenv(env::rank);
  log_error(fmt::format("rank {} ends with an uncaught exception: {}", rank != nullptr ? rank : "0",
                        describe_exception()));
  ::_exit(status::failed);
}

}  // namespace

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
  spdlog::info("{}", printable_message(message));
}
void log_warning(std::string_view message) {
  spdlog::warn("{}", printable_message(message));
}
void log_error(std::string_view message) {
  spdlog::error("{}", printable_message(message));
}

void log_uncaught_exceptions() {
  std::set_terminate(end_by_exception);
}

}  // namespace dstrain
