#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tests/e2e/launch_process.h"
#include "tests/support/test_tree.h"

namespace dstrain::test {

inline const std::filesystem::path golden_folder = source_tree() / "tests/golden";

/// What `dstrain --num_gpus RANKS train ...` did.
struct TrainRun {
  int status = -1;
  std::string out;
  std::string err;
  std::vector<nlohmann::json> metrics;  ///< the lines of metrics.jsonl
};

/// Runs it in tests/golden, with output in `output`, every step logged, at a constant rate and
/// without checkpoints (unless the arguments say so), by the given configuration (none when null).
TrainRun run_train(int ranks,
                   const nlohmann::json& ds_config,
                   const std::filesystem::path& output,
                   std::vector<std::string> arguments,
                   std::vector<launcher::EnvVar> environment = {});

/// The same with any launch options.
TrainRun run_train(const std::vector<std::string>& launch_options,
                   const nlohmann::json& ds_config,
                   const std::filesystem::path& output,
                   const std::vector<std::string>& arguments,
                   std::vector<launcher::EnvVar> environment = {});

/// The lines of OUTPUT/metrics.jsonl.
std::vector<nlohmann::json> read_metrics(const std::filesystem::path& output);

/// How far the steps of a run are from what they should be under `key`, at most, relative to that;
/// NaN where one is.
double worst_relative(const std::vector<nlohmann::json>& found,
                      const nlohmann::json& expected,
                      const char* key);

nlohmann::json read_json(const std::filesystem::path& path);

/// The bytes of a file.
std::string read_bytes(const std::filesystem::path& path);

}  // namespace dstrain::test
