#pragma once
#include <cstdint>
#include <filesystem>

namespace dstrain::monitor {

/// An evaluation outside a training run.
struct EvalResults {
  double loss = 0;  ///< mean per token, natural log
  std::int64_t samples = 0;
  double seconds = 0;
};

/// Writes `directory`/eval_results.json and updates these members of all_results.json; those of a
/// training run stay. Names and files are those of Hugging Face's Trainer.save_metrics. Throws
/// Error{io}, or Error{input} if all_results.json is not a JSON object.
void write_eval_results(const std::filesystem::path& directory, const EvalResults& results);

}  // namespace dstrain::monitor
