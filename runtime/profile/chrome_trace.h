#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/profile/step_times.h"

namespace dstrain::profile {

/// A rank's timeline at the end of a run.
struct RankProfile {
  std::array<std::vector<Span>, lane_count> lanes;  ///< each in order of the spans' ends
  std::vector<StepTimes> steps;
  std::vector<GpuSample> gpu_samples;
  StepTimes total;                              ///< of all steps; `step` is the number of steps
  std::int64_t spans_lost = 0;                  ///< older spans that were dropped
  std::optional<double> clock_error_seconds{};  ///< of the device's times; nothing: no device
};

/// Writes timelines as Chrome's trace JSON, for chrome://tracing and Perfetto: a process per rank,
/// a thread per lane, and a counter for the GPU's sensors. "metadata" holds the sums and the steps
/// of each rank. Streams to the file.
class ChromeTrace {
 public:
  /// `units`: names, indexed by a span's detail. Throws Error{io}.
  ChromeTrace(std::filesystem::path path, std::vector<std::string> units);
  void add_rank(int rank, const RankProfile& profile);
  /// Completes the file. Throws Error{io} if any write failed.
  void finish();

 private:
  void add_event(const std::string& json);

  std::filesystem::path path_;
  std::vector<std::string> units_;
  std::ofstream file_;
  bool first_event_ = true;
  std::vector<std::string> ranks_;  ///< their metadata as JSON
};

}  // namespace dstrain::profile
