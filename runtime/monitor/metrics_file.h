#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "runtime/device/memory_resource.h"

namespace dstrain::monitor {

/// One optimizer step, over all ranks.
struct StepMetrics {
  std::int64_t step = 0;  ///< from 1
  double epoch = 0;       ///< share of the training samples consumed so far
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  ///< before clipping
  double loss_scale = 1;
  std::int64_t skipped_steps = 0;
  std::int64_t tokens = 0;  ///< trained on so far
  double tokens_per_second = 0;
  double step_seconds = 0;  ///< mean since the last step that was logged or printed
  double model_tflops = 0;
  /// Peak of the largest rank, by MemoryTier, and what `device` consists of, by MemoryCategory.
  std::array<Bytes, memory_tier_names.size()> memory{};
  std::array<Bytes, memory_category_names.size()> device_categories{};
  /// What the memory plan said of `device_categories` before the start.
  std::array<Bytes, memory_category_names.size()> planned_categories{};
};

struct EvalMetrics {
  std::int64_t step = 0;
  double loss = 0;  ///< mean per token, natural log
};

/// OUTPUT_DIR/metrics.jsonl: one JSON object per line, flushed line by line. Numbers round-trip.
class MetricsFile {
 public:
  /// Starts an empty file. Throws Error{io}.
  explicit MetricsFile(const std::filesystem::path& path);
  void write(const StepMetrics& metrics);
  void write(const EvalMetrics& metrics);

 private:
  void write_line(const std::string& line);
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace dstrain::monitor
