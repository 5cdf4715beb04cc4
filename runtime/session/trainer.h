#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/batch_loader.h"
#include "runtime/data/batch_prefetcher.h"
#include "runtime/engine/best_checkpoint.h"
#include "runtime/engine/checkpointer.h"
#include "runtime/engine/save_requests.h"
#include "runtime/engine/step_counts.h"
#include "runtime/monitor/gpu_meter.h"
#include "runtime/monitor/metrics_file.h"
#include "runtime/session/matmul_tuning.h"
#include "runtime/session/rank_session.h"
#include "runtime/session/run_setup.h"
#include "runtime/session/stop_signals.h"

namespace dstrain::session {

/// The training loop of one rank: data, steps, learning rate, evaluation and metrics. Every rank
/// runs one; rank 0 reports.
class Trainer {
 public:
  /// All must outlive the trainer.
  struct Inputs {
    RunSetup& setup;  ///< its state follows the training
    JoinedRank& rank;
    RankSession& session;
    const data::BatchLoader& training_data;
    const data::EvaluationLoader* validation_data;  ///< null: no evaluation
    engine::Checkpointer& checkpointer;
    monitor::MetricsFile* metrics;                       ///< null except on rank 0
    MatmulTuning* tuning;                                ///< null: none
    const std::function<void(const std::string&)>& say;  ///< prints progress
    const StopSignals& signals;  ///< looked at once a step, before its update
  };
  explicit Trainer(const Inputs& inputs);

  struct Outcome {
    std::int64_t steps = 0;  ///< taken, including those before a resume
    bool stopped = false;    ///< before the end, because a rank was asked to stop
    std::optional<engine::BestCheckpoint> best{};
    /// Why the last due checkpoint was not saved; empty: it was saved, or none was due.
    std::string unsaved{};
  };
  /// Trains to the end, or until a rank is asked to stop, and then saves. Throws Error{io} if that
  /// fails. Collective.
  Outcome run();

 private:
  Outcome take_steps();
  /// The report that each rank sends to the others once a step. The reports of all decide the next
  /// step.
  struct Report {
    std::int64_t labels = 0;         ///< that count in its batches of the next step
    std::uint32_t save_request = 0;  ///< the newest that it has received
    engine::Checkpointer::State save = engine::Checkpointer::State::idle;
    bool stop = false;  ///< it was asked to
  };
  [[nodiscard]] std::vector<Report> exchange();
  void advance_save();
  [[nodiscard]] bool stops() const;
  [[nodiscard]] bool saves_on_request(std::int64_t step);
  Outcome stop(std::int64_t step);
  void begin_save(std::int64_t step);
  [[nodiscard]] std::string unsaved() const;
  [[nodiscard]] std::int64_t samples_since_start(std::int64_t step) const;
  void end_save();
  [[nodiscard]] bool due(const config::Cadence& cadence, std::int64_t step) const;
  [[nodiscard]] bool saves_after(std::int64_t step);
  void load_next(std::int64_t step, data::BatchPrefetcher& batches);
  [[nodiscard]] data::StepBatches empty_batches() const;
  void load(std::int64_t step, data::StepBatches& batches) const;
  /// A step that was launched and not yet reported.
  struct Launched {
    std::int64_t step = 0;
    double learning_rate = 0;
    double loss_scale = 1;
    double begun_at_seconds = 0;
  };
  void launch_step(std::int64_t step, data::BatchPrefetcher& batches);
  void tune();
  void leave_out(double seconds);
  void settle();
  ops::StepDecision await_decision(std::int64_t step);
  void tell_skip(std::int64_t step, const ops::StepDecision& decision);
  void tell_progress(const Launched& launched, double loss);
  [[nodiscard]] bool logs(std::int64_t step) const;
  [[nodiscard]] bool prints(std::int64_t step) const;
  void report(const Launched& launched, const ops::StepDecision& decision);
  void print(const monitor::StepMetrics& metrics, const std::string& times);
  [[nodiscard]] std::string describe_times();
  void evaluate(std::int64_t step);
  [[nodiscard]] monitor::StepMetrics measure(std::int64_t step);
  template <class Metrics>
  void write(const Metrics& metrics);
  void flush_metrics();
  void tell_metrics_failure();

  const Inputs inputs_;
  const config::TrainSettings& settings_;
  engine::TrainerState& state_;
  engine::Engine& engine_;
  comm::ControlGroup& control_group_;
  profile::Timeline* timeline_;  ///< null: nothing is recorded
  ProgressPage& progress_;
  const Clock& clock_;
  std::int64_t first_step_ = 1;
  std::int64_t total_steps_ = 0;
  std::int64_t begun_save_ = 0;  ///< the step of the last save that was begun; 0: none
  std::vector<engine::MicroBatch> micro_batches_;  ///< of the next step, or of the one under way
  std::vector<Report> reports_;                    ///< of all ranks, of the last exchange
  bool reports_are_old_ = true;                    ///< a save or an evaluation happened since
  engine::SaveRequests save_requests_;
  engine::BestTracker best_;
  engine::StepCounts counts_;
  monitor::GpuMeter gpu_meter_;
  engine::MeanLoss unprinted_loss_;
  std::optional<Launched> launched_;
  engine::StepRate step_rate_;
  double settled_at_seconds_ = 0;
  std::int64_t reported_step_ = 0;
  double reported_at_seconds_ = 0;
  double started_at_seconds_ = 0;
  bool metrics_wait_ = false;  ///< for free disk space
};

}  // namespace dstrain::session
