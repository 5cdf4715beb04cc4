#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/unique_handle.h"
#include "runtime/device/memory_resource.h"
#include "runtime/monitor/gpu_meter.h"

namespace dstrain::monitor {

/// One optimizer step, over all ranks.
struct StepMetrics {
  std::int64_t step = 0;  ///< from 1
  double epoch = 0;       ///< passes over the training samples so far
  double loss = 0;        ///< mean of the steps since the row before
  double step_loss = 0;   ///< of the step
  double learning_rate = 0;
  double gradient_norm = 0;        ///< before clipping
  double loss_scale = 1;           ///< of the step
  std::int64_t skipped_steps = 0;  ///< that were not taken, so far
  std::int64_t tokens = 0;         ///< trained on so far
  double tokens_per_second = 0;
  double step_seconds = 0;  ///< mean since the last step that was logged or printed
  double model_tflops = 0;
  /// Peak of the largest rank, by MemoryTier, and what `device` consists of, by MemoryCategory.
  std::array<Bytes, memory_tier_names.size()> memory{};
  CategoryBytes device_categories{};
  std::optional<GpuLoad> gpus{};
  TierBytes planned{};  ///< what the memory plan said before the start, once something is saved
};

struct EvalMetrics {
  std::int64_t step = 0;
  double loss = 0;  ///< mean per token, natural log
};

/// Where a resumed run continues.
struct MetricsResume {
  std::int64_t last_step = 0;    ///< lines of later ones go; 0: all do
  std::int64_t logged_step = 0;  ///< the last one that a line was made of; 0: not known
};

/// OUTPUT_DIR/metrics.jsonl: one JSON object per line, handed to the system line by line. Numbers
/// round-trip. Where lines are missing a line says so: {"step": S, "missing_after_step": R} for
/// those of the steps after R up to S, {"step": S, "unreadable_lines": N} for N after those of S.
class MetricsFile {
 public:
  /// Keeps what a file that is there has up to where the run resumes. Throws Error{io}.
  explicit MetricsFile(std::filesystem::path path, MetricsResume resume = {});
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  MetricsFile(MetricsFile&&) = delete;
  MetricsFile& operator=(MetricsFile&&) = delete;
  /// Tries for the last time to write what waits, and says what is lost.
  ~MetricsFile();
  void write(const StepMetrics& metrics);
  void write(const EvalMetrics& metrics);
  /// Tries again to write what could not be written.
  void flush();
  /// Makes the lines in the file survive a power cut, also while another thread writes more. Throws
  /// Error{io}.
  void make_durable() const;

  /// Why lines could not be written; they are kept, some 15,000 of them, and tried again with the
  /// next. Empty when all are in the file.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// What was found missing in the file that was there, for people; empty: nothing.
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  struct Line {
    std::int64_t first_step;  ///< this line's, or those that it says are missing
    std::int64_t step;
    std::string text;
  };
  void go_on(MetricsResume resume);
  void write_line(std::int64_t step, std::string line);
  void keep_line(std::int64_t step, std::string line);
  void drop_oldest();
  bool append(const std::string& text);

  std::filesystem::path path_;
  UniqueFd fd_;
  std::deque<Line> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::string failure_;
  std::string missing_;
};

}  // namespace dstrain::monitor
