#include "runtime/monitor/progress_line.h"

#include <cmath>

#include "runtime/base/units.h"

namespace dstrain::monitor {
namespace {

std::string with_commas(std::int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace

std::string to_text(const ProgressLine& line) {
  return fmt::format("step {}/{} | loss {:.4f} | lr {:.2e} | norm {:.3f} | {} tokens/s | ETA {}",
                     line.step, line.steps, line.loss, line.learning_rate, line.gradient_norm,
                     with_commas(std::llround(line.tokens_per_second)),
                     format_duration(line.seconds_left));
}

std::string to_text(const EvaluationProgress& progress) {
  const double rate = static_cast<double>(progress.samples) / progress.seconds;
  const double left = static_cast<double>(progress.of - progress.samples) / rate;
  return fmt::format("evaluated {}/{} samples | {:.1f} samples/s | ETA {}",
                     with_commas(progress.samples), with_commas(progress.of), rate,
                     format_duration(left));
}

std::string describe_held_out(double loss) {
  return fmt::format("held-out loss {:.4f} | perplexity {:.3f}", loss, std::exp(loss));
}

}  // namespace dstrain::monitor
