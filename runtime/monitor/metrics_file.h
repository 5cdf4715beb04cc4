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
  double loss = 0;        ///< mean of the steps since the previous line
  double step_loss = 0;   ///< of this step
  double learning_rate = 0;
  double gradient_norm = 0;        ///< before clipping
  double loss_scale = 1;           ///< of this step
  std::int64_t skipped_steps = 0;  ///< number of skipped steps so far
  std::int64_t tokens = 0;         ///< trained on so far
  double tokens_per_second = 0;
  double step_seconds = 0;  ///< mean since the last step that was logged or printed
  double model_tflops = 0;
  /// Peak of the largest rank, by MemoryTier, and the parts of `device`, by MemoryCategory.
  std::array<Bytes, memory_tier_names.size()> memory{};
  CategoryBytes device_categories{};
  std::optional<GpuLoad> gpus{};
  TierBytes planned{};  ///< by the memory plan before the start, once something is saved
};

struct EvalMetrics {
  std::int64_t step = 0;
  double loss = 0;  ///< mean per token, natural log
};

/// Where a resumed run continues.
struct MetricsResume {
  std::int64_t last_step = 0;    ///< later lines are removed; 0: all are
  std::int64_t logged_step = 0;  ///< the last step for which a line was made; 0: not known
};

/// Writes OUTPUT_DIR/metrics.jsonl: one JSON object per line, one write(2) per line. Numbers
/// round-trip. A line marks each place where others are missing: {"step": S, "missing_after_step":
/// R} for the steps after R up to S, {"step": S, "unreadable_lines": N} for N lines after those of
/// S.
class MetricsFile {
 public:
  /// Keeps the lines of an existing file up to the step that the run resumes from. Throws
  /// Error{io}.
  explicit MetricsFile(std::filesystem::path path, MetricsResume resume = {});
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  MetricsFile(MetricsFile&&) = delete;
  MetricsFile& operator=(MetricsFile&&) = delete;
  /// Tries a last time to write the waiting lines, and logs what is lost.
  ~MetricsFile();
  void write(const StepMetrics& metrics);
  void write(const EvalMetrics& metrics);
  /// Retries the lines that could not be written.
  void flush();
  /// Makes the lines in the file survive a power cut, even while another thread writes more. Throws
  /// Error{io}.
  void make_durable() const;

  /// Returns why lines could not be written; empty if all are in the file. They are kept (some
  /// 15,000 of them) and retried with the next one.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// Describes what was missing in the existing file; empty: nothing.
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  struct Line {
    std::int64_t first_step;  ///< of this line, or of the lines that it reports missing
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
