#include "runtime/monitor/metrics_file.h"

#include <cerrno>
#include <cmath>
#include <system_error>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/monitor/kept_lines.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/shared_place.h"

namespace dstrain::monitor {
namespace {

template <std::size_t count>
nlohmann::ordered_json named(const std::array<const char*, count>& names,
                             const std::array<Bytes, count>& bytes) {
  nlohmann::ordered_json object;
  for (std::size_t i = 0; i < count; ++i) object[names.at(i)] = bytes.at(i);
  return object;
}

std::array<Bytes, memory_tier_names.size()> totals(const TierBytes& bytes) {
  std::array<Bytes, memory_tier_names.size()> sums{};
  for (std::size_t tier = 0; tier < bytes.size(); ++tier) {
    for (const Bytes each : bytes.at(tier)) sums.at(tier) += each;
  }
  return sums;
}

template <class Number>
nlohmann::ordered_json or_null(const std::optional<Number>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
}

constexpr std::size_t waiting_bytes_max = 16U << 20;

std::string gap_line(std::int64_t after_step, std::int64_t step) {
  return nlohmann::ordered_json{{"step", step}, {"missing_after_step", after_step}}.dump();
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path path, MetricsResume resume)
    : path_(std::move(path)) {
  const bool goes_on = resume.last_step > 0;
  if (goes_on) go_on(resume);
  fd_ = open_to_append(path_, goes_on ? Content::keep : Content::drop);
  flush();
}

MetricsFile::~MetricsFile() {
  flush();
  if (failure_.empty()) return;
  log_error(
      fmt::format("{}; the lines from step {} on are lost", failure_, waiting_.front().first_step));
}

void MetricsFile::go_on(MetricsResume resume) {
  KeptLines kept;
  if (std::filesystem::exists(path_)) kept = keep_lines_until(path_, resume.last_step);
  if (kept.unreadable > 0) {
    missing_ = fmt::format("{} lines that cannot be read are left out", kept.unreadable);
  }
  if (kept.step >= resume.logged_step) return;
  missing_ += fmt::format(
      "{}the lines of steps {} to {} are missing: they were not written before the checkpoint was",
      missing_.empty() ? "" : "; ", kept.step + 1, resume.logged_step);
  keep_line(resume.logged_step, gap_line(kept.step, resume.logged_step));
}

void MetricsFile::write(const StepMetrics& metrics) {
  nlohmann::ordered_json line{
      {"step", metrics.step},
      {"epoch", metrics.epoch},
      {"loss", metrics.loss},
      {"step_loss", metrics.step_loss},
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
  if (metrics.gpus) {
    line["gpus"] = {{"watts", or_null(metrics.gpus->watts)},
                    {"busy_percent", or_null(metrics.gpus->busy_percent)},
                    {"celsius", or_null(metrics.gpus->celsius)}};
  }
  write_line(metrics.step, line.dump());
}

void MetricsFile::write(const EvalMetrics& metrics) {
  const nlohmann::ordered_json line{
      {"step", metrics.step}, {"eval_loss", metrics.loss}, {"perplexity", std::exp(metrics.loss)}};
  write_line(metrics.step, line.dump());
}

void MetricsFile::write_line(std::int64_t step, std::string line) {
  keep_line(step, std::move(line));
  flush();
}

void MetricsFile::keep_line(std::int64_t step, std::string line) {
  line += '\n';
  waiting_bytes_ += line.size();
  waiting_.push_back({step, step, std::move(line)});
  while (waiting_bytes_ > waiting_bytes_max && waiting_.size() > 1) drop_oldest();
}

/// Replaces the two oldest lines by one that says that they are missing.
void MetricsFile::drop_oldest() {
  const Line first = std::move(waiting_.front());
  waiting_.pop_front();
  Line& second = waiting_.front();
  waiting_bytes_ -= first.text.size() + second.text.size();
  second = {first.first_step, second.step, gap_line(first.first_step - 1, second.step) + "\n"};
  waiting_bytes_ += second.text.size();
}

/// Appends the whole line, or nothing and sets errno.
bool MetricsFile::append(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(fd_.get(), text.data() + done, text.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      break;
    }
  }
  if (done == text.size()) return true;
  const int error = errno;
  const off_t end = ::lseek(fd_.get(), 0, SEEK_END);
  // If a part stays, the reader treats it as an unreadable line.
  if (done > 0) static_cast<void>(!::ftruncate(fd_.get(), end - static_cast<off_t>(done)));
  errno = error;
  return false;
}

void MetricsFile::make_durable() const {
  flush_file(fd_.get(), path_.string());
}

void MetricsFile::flush() {
  failure_.clear();
  while (!waiting_.empty()) {
    if (!is_file_at(fd_.get(), path_)) {
      failure_ =
          path_.string() + ": the file was removed, or its directory, while the run wrote it";
      return;
    }
    if (!append(waiting_.front().text)) {
      failure_ =
          fmt::format("write {}: {}", path_.string(), std::generic_category().message(errno));
      return;
    }
    waiting_bytes_ -= waiting_.front().text.size();
    waiting_.pop_front();
  }
}

}  // namespace dstrain::monitor
