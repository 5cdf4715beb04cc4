#include "runtime/monitor/metrics_file.h"

#include <cerrno>
#include <cmath>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"

namespace dstrain::monitor {
namespace {

template <std::size_t N>
nlohmann::ordered_json named(const std::array<const char*, N>& names,
                             const std::array<Bytes, N>& bytes) {
  nlohmann::ordered_json object;
  for (std::size_t i = 0; i < N; ++i) object[names.at(i)] = bytes.at(i);
  return object;
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path)
    : path_(path), file_(path, std::ios::trunc) {
  if (!file_) fail_errno(errno, "create " + path.string());
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
      {"planned_device_memory", named(memory_category_names, metrics.planned_categories)}};
  write_line(line.dump());
}

void MetricsFile::write(const EvalMetrics& metrics) {
  const nlohmann::ordered_json line{
      {"step", metrics.step}, {"eval_loss", metrics.loss}, {"perplexity", std::exp(metrics.loss)}};
  write_line(line.dump());
}

void MetricsFile::write_line(const std::string& line) {
  file_ << line << '\n' << std::flush;
  if (!file_) fail_errno(errno, "write " + path_.string());
}

}  // namespace dstrain::monitor
