#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/e2e/train_run.h"

namespace dstrain::test {

/// A training run of a small model with dropout on shuffled samples, ten steps to an epoch, that
/// can be cut and gone on with.
struct ResumableRun {
  int ranks = 2;
  int stage = 0;
  bool bf16 = false;
  nlohmann::json fp16 = nullptr;  ///< the section; null: none
  bool in_16_bits = false;        ///< with bf16: masters, gradients and states, too
  std::string optimizer = "AdamW";
  int micro_batch = 0;  ///< of a batch of 12; 0: no accumulation
  double clipping = 0.5;
  bool checkpointed_activations = false;
  nlohmann::json zero = nlohmann::json::object();  ///< more of zero_optimization
  std::vector<std::string> train_file{"tokens.bin"};
  std::vector<std::string> more{};
  std::vector<launcher::EnvVar> environment{};

  [[nodiscard]] nlohmann::json config() const;
  [[nodiscard]] std::vector<std::string> arguments(int max_steps) const;
  /// The command of a run without an end and, unless `extra` says so, without checkpoints. Writes
  /// its configuration beside `output`.
  [[nodiscard]] std::vector<std::string> endless(const std::filesystem::path& output,
                                                 const std::vector<std::string>& extra = {}) const;
  /// Trains up to `max_steps` in `output`, with checkpoints.
  [[nodiscard]] TrainRun train(const std::filesystem::path& output,
                               int max_steps,
                               std::vector<std::string> extra = {}) const;
  [[nodiscard]] TrainRun resume(const std::filesystem::path& output,
                                int max_steps,
                                std::vector<std::string> extra = {}) const;
};

/// The command of a run of two steps that leaves no checkpoint.
std::vector<std::string> train_command(const std::filesystem::path& output);

/// What of the metrics depends on nothing but the run: step, epoch, loss, rate, norm and tokens of
/// each line, as they are written.
std::vector<std::string> results_of(const TrainRun& run);

/// Changes one byte of a file.
void flip_byte(const std::filesystem::path& file, std::uintmax_t at);

}  // namespace dstrain::test
