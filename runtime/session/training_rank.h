#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "runtime/engine/checkpointer.h"
#include "runtime/engine/resume.h"
#include "runtime/rank/worker_env.h"
#include "runtime/session/matmul_tuning.h"
#include "runtime/session/rank_session.h"
#include "runtime/session/run_setup.h"
#include "runtime/session/stop_signals.h"
#include "runtime/session/trainer.h"

namespace dstrain::session {

/// A rank that trains: a session with checkpoints, metrics and the training loop.
class TrainingRank {
 public:
  /// Prints a line for people, on rank 0.
  using Say = std::function<void(const std::string&)>;
  /// Loads the parameters, or the checkpoint to go on from. Collective. `setup`, whose state
  /// follows the training, `rank` and `remedies` must outlive it.
  TrainingRank(RunSetup& setup, JoinedRank& rank, const Remedies& remedies, Say say);

  /// Until the last step, or the end of the one in which a signal arrived at a rank.
  Trainer::Outcome train(const StopSignals& signals);
  /// Writes the model to the output directory, the best one if that is asked for, then the profile
  /// if there is one.
  void save(const Trainer::Outcome& outcome);
  /// Why lines of metrics.jsonl are not there, after one more try; empty: all are. For rank 0.
  [[nodiscard]] std::string lost_metrics();
  /// OUTPUT_DIR/checkpoint-N.
  [[nodiscard]] std::filesystem::path checkpoint_of(std::int64_t step) const {
    return checkpointer_->path_of(step);
  }

 private:
  void load();
  [[nodiscard]] engine::DataStart data_start(const engine::TrainerState& saved) const;
  void tell_new_data(const engine::Resumed& resumed) const;
  [[nodiscard]] std::optional<engine::BestCheckpoint> find_best(const engine::Resumed& resumed);
  void set_up_tuning();
  void load_best(const Trainer::Outcome& outcome);
  void load_checkpoint(const std::filesystem::path& path);
  void flush_metrics() const;
  void tell_library_memory();

  RunSetup& setup_;
  JoinedRank& rank_;
  const WorkerEnv& worker_;
  ProgressPage& progress_;
  Say say_;
  RankSession session_;
  comm::ControlGroup& control_group_;
  Streams streams_;
  /// The step of the checkpoint in the output directory from which the run goes on; 0: none there.
  std::int64_t continued_step_ = 0;
  std::optional<MatmulTuning> tuning_;
  std::optional<monitor::MetricsFile> metrics_;  ///< of rank 0, from the start of training on
  std::unique_ptr<engine::Checkpointer> checkpointer_;  ///< its thread flushes the metrics
};

}  // namespace dstrain::session
