#include "runtime/monitor/metrics_file.h"

#include <cerrno>
#include <cmath>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace dstrain::monitor {
namespace {

template <std::size_t N>
nlohmann::ordered_json named(const std::array<const char*, N>& names,
                             const std::array<Bytes, N>& bytes) {
  nlohmann::ordered_json object;
  for (std::size_t i = 0; i < N; ++i) object[names.at(i)] = bytes.at(i);
  return object;
}

std::array<Bytes, memory_tier_names.size()> totals(const TierBytes& bytes) {
  std::array<Bytes, memory_tier_names.size()> sums{};
  for (std::size_t tier = 0; tier < bytes.size(); ++tier) {
    for (const Bytes each : bytes.at(tier)) sums.at(tier) += each;
  }
  return sums;
}

/// The lines of a file up to a step. What is no whole line, or no object with a step, is left out.
std::string lines_until(const std::filesystem::path& path, std::int64_t last_step) {
  constexpr Bytes file_bytes_max = 16 * 1024 * mebibyte;
  std::istringstream lines(read_text_file(path, file_bytes_max));
  std::string kept;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) continue;
    if (json["step"].get<std::int64_t>() <= last_step) kept += line + "\n";
  }
  return kept;
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path, std::int64_t last_step)
    : path_(std::move(path)) {
  const bool goes_on = last_step > 0 && std::filesystem::exists(path_);
  if (goes_on) write_text_file(path_, lines_until(path_, last_step));
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (goes_on ? 0 : O_TRUNC);
  fd_ = UniqueFd(::open(path_.c_str(), flags, 0644));
  if (!fd_) fail_errno(errno, "create " + path_.string());
}

void MetricsFile::write(const StepMetrics& metrics) {
  const nlohmann::ordered_json line{
      {"step", metrics.step},
      {"epoch", metrics.epoch},
      {"loss", metrics.loss},
      {"learning_rate", metrics.learning_rate},
      {"grad_norm", metrics.gradient_norm},
      {"loss_scale", metrics.loss_scale},
      {"skipped_steps", metrics.skipped_steps},
      {"tokens", metrics.tokens},
      {"tokens_per_second", metrics.tokens_per_second},
      {"step_seconds", metrics.step_seconds},
      {"model_tflops", metrics.model_tflops},
      {"memory", named(memory_tier_names, metrics.memory)},
      {"device_memory", named(memory_category_names, metrics.device_categories)},
      {"planned_memory", named(memory_tier_names, totals(metrics.planned))},
      {"planned_device_memory", named(memory_category_names, metrics.planned.front())}};
  write_line(line.dump());
}

void MetricsFile::write(const EvalMetrics& metrics) {
  const nlohmann::ordered_json line{
      {"step", metrics.step}, {"eval_loss", metrics.loss}, {"perplexity", std::exp(metrics.loss)}};
  write_line(line.dump());
}

void MetricsFile::write_line(const std::string& line) {
  unwritten_ += line + "\n";
  failure_.clear();
  while (!unwritten_.empty()) {
    const ssize_t written = ::write(fd_.get(), unwritten_.data(), unwritten_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      failure_ =
          fmt::format("write {}: {}", path_.string(), std::generic_category().message(errno));
      return;
    }
    unwritten_.erase(0, static_cast<std::size_t>(written));
  }
}

}  // namespace dstrain::monitor
