#include "runtime/monitor/eval_results.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"
#include "runtime/os/file.h"

namespace dstrain::monitor {

void write_eval_results(const std::filesystem::path& directory, const EvalResults& results) {
  const nlohmann::json own{
      {"eval_loss", results.loss},
      {"eval_runtime", results.seconds},
      {"eval_samples", results.samples},
      {"eval_samples_per_second", static_cast<double>(results.samples) / results.seconds},
      {"perplexity", std::exp(results.loss)}};
  write_text_file(directory / "eval_results.json", own.dump(4) + "\n");
  const std::filesystem::path path = directory / "all_results.json";
  nlohmann::json all = nlohmann::json::object();
  if (std::filesystem::exists(path)) {
    constexpr Bytes bytes_max = 16 * mebibyte;
    all = parse_json_object(read_text_file(path, bytes_max), path.string());
  }
  all.update(own);
  write_text_file(path, all.dump(4) + "\n");
}

}  // namespace dstrain::monitor
