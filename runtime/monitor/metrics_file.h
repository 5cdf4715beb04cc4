#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/base/unique_fd.h"
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
  CategoryBytes device_categories{};
  TierBytes planned{};  ///< what the memory plan said before the start, once something is saved
};

struct EvalMetrics {
  std::int64_t step = 0;
  double loss = 0;  ///< mean per token, natural log
};

/// OUTPUT_DIR/metrics.jsonl: one JSON object per line, handed to the system line by line. Numbers
/// round-trip.
class MetricsFile {
 public:
  /// Keeps the lines of a file that is there up to `last_step`; 0: starts an empty one. Throws
  /// Error{io}.
  explicit MetricsFile(std::filesystem::path path, std::int64_t last_step = 0);
  void write(const StepMetrics& metrics);
  void write(const EvalMetrics& metrics);

  /// Why lines could not be written; they are kept, and tried again with the next. Empty when all
  /// are in the file.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  void write_line(const std::string& line);
  std::filesystem::path path_;
  UniqueFd fd_;
  std::string unwritten_;
  std::string failure_;
};

}  // namespace dstrain::monitor
