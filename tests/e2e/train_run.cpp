#include "tests/e2e/train_run.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

namespace dstrain::test {

std::string read_bytes(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

double worst_relative(const std::vector<nlohmann::json>& found,
                      const nlohmann::json& expected,
                      const char* key) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double truth = expected[i].at(key).get<double>();
    const double error = std::abs(found[i].at(key).get<double>() - truth) / truth;
    if (!(error <= worst)) worst = error;  // a NaN stays
  }
  return worst;
}

nlohmann::json read_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(read_bytes(path));
}

std::vector<nlohmann::json> read_metrics(const std::filesystem::path& output) {
  std::vector<nlohmann::json> metrics;
  std::ifstream lines(output / "metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    metrics.push_back(nlohmann::json::parse(line));
  }
  return metrics;
}

TrainRun run_train(int ranks,
                   const nlohmann::json& ds_config,
                   const std::filesystem::path& output,
                   std::vector<std::string> arguments,
                   std::vector<launcher::EnvVar> environment) {
  return run_train(std::vector<std::string>{"--num_gpus", std::to_string(ranks)}, ds_config, output,
                   arguments, std::move(environment));
}

TrainRun run_train(const std::vector<std::string>& launch_options,
                   const nlohmann::json& ds_config,
                   const std::filesystem::path& output,
                   const std::vector<std::string>& arguments,
                   std::vector<launcher::EnvVar> environment) {
  std::vector<std::string> command = launch_options;
  command.insert(command.end(), {"train", "--output_dir", output.string(), "--overwrite_output_dir",
                                 "--logging_steps", "1", "--save_steps", "0"});
  if (ds_config.is_null() || !ds_config.contains("scheduler")) {
    command.insert(command.end(), {"--lr_scheduler_type", "constant"});
  }
  if (!ds_config.is_null()) {
    const std::filesystem::path file = output.string() + ".json";
    std::ofstream(file) << ds_config.dump();
    command.insert(command.end(), {"--deepspeed", file.string()});
  }
  command.insert(command.end(), arguments.begin(), arguments.end());
  Launch launch(command, {.env = std::move(environment), .directory = golden_folder.string()});
  TrainRun run;
  run.status = launch.wait();
  run.out = launch.out();
  run.err = launch.err();
  run.metrics = read_metrics(output);
  return run;
}

}  // namespace dstrain::test
