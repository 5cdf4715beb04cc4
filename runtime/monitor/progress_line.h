#pragma once
#include <cstdint>
#include <string>

namespace dstrain::monitor {

/// What the progress line of a running job shows.
struct ProgressLine {
  std::int64_t step = 0;
  std::int64_t steps = 0;  ///< of the whole run
  double loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;
  double tokens_per_second = 0;
  double seconds_left = 0;
};

/// "step 120/400 | loss 2.3180 | lr 6.00e-04 | norm 0.810 | 31,204 tokens/s | ETA 1m12s".
std::string to_text(const ProgressLine& line);

/// What the progress line of an evaluation shows.
struct EvaluationProgress {
  std::int64_t samples = 0;  ///< that are done
  std::int64_t of = 0;
  double seconds = 0;  ///< since it began
};

/// "evaluated 280/1,180 samples | 12.5 samples/s | ETA 1m12s".
std::string to_text(const EvaluationProgress& progress);

/// "held-out loss 2.3180 | perplexity 10.155".
std::string describe_held_out(double loss);

}  // namespace dstrain::monitor
