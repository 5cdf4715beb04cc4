#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dstrain/engine.h>

#include "runtime/base/function_ref.h"
#include "runtime/config/ds_config.h"
#include "runtime/engine/step_counts.h"
#include "runtime/model/model.h"
#include "runtime/rank/rank_control.h"
#include "runtime/session/batch_rows.h"
#include "runtime/session/meeting.h"
#include "runtime/session/parameter_access.h"
#include "runtime/session/rank_session.h"
#include "runtime/session/run_setup.h"

namespace dstrain::session {

using MakeModel = std::function<model::Model(const model::UnitOptions&)>;

/// A model that a caller's own loop trains or runs: dstrain::Engine, which documents the methods.
class TrainingSession {
 public:
  struct Inputs {
    JoinedRank& rank;  ///< must outlive the session
    const config::DsConfig& config;
    const config::ModelSettings& model;
    const MakeModel& make_model;  ///< of `model`
    InitializeOptions options;
    Bytes device_bytes_of_others = 0;  ///< by the plans of this rank's other sessions
    std::int64_t number = 0;           ///< of this session, the same on all ranks
  };
  explicit TrainingSession(const Inputs& inputs);

  StepResult train_batch(const Batch& batch);
  double forward_backward(const Batch& micro_batch, std::int64_t labels);
  StepResult step();
  double evaluate(const Batch& batch);
  std::vector<float> logits(const Batch& batch);
  void save_checkpoint(const std::filesystem::path& directory, const SaveOptions& options);
  std::optional<Loaded> load_checkpoint(const std::filesystem::path& directory,
                                        const std::string& tag);
  void save_pretrained(const std::filesystem::path& directory);
  [[nodiscard]] std::vector<ParameterInfo> parameters() const;
  WholeParameters gather(const std::vector<std::string>& names);
  /// Takes the parameters whose values on rank 0 are no longer those of gather().
  void take_changes(const WholeParameters& before, const WholeParameters& values);

  [[nodiscard]] std::int64_t steps() const { return setup_.state.global_step; }
  [[nodiscard]] double learning_rate() const;
  [[nodiscard]] const config::TrainSettings& settings() const { return setup_.settings; }
  [[nodiscard]] std::int64_t outputs() const { return outputs_; }
  [[nodiscard]] const zero::MemoryPlan& plan() const { return setup_.memory.plan; }

 private:
  static RunSetup set_up(const Inputs& inputs);

  /// The sums over all ranks.
  struct Total {
    std::int64_t labels = 0;
    std::int64_t positions = 0;
    std::int64_t batches = 0;  ///< of the rank with the most
  };
  /// See session::meet().
  std::vector<Share> meet(const Share& own);
  void meet(Call call) { meet(Share{.call = call, .engine = number_}); }
  /// The same for calls with a batch, of which all must fit.
  Total agree(Call call, const Batch& batch, const std::string& problem, std::int64_t told = 0);
  /// Refuses a call within a step by hand, and any after a step that an exception has left.
  void refuse_open_step(const char* attempted) const;
  void refuse_broken() const;
  void require_training() const;
  [[nodiscard]] std::int64_t first_sample(std::int64_t micro_batch) const;
  using Action = FunctionRef<void(engine::Engine&)>;
  /// Calls `action`. After an exception from it the engine is of no use.
  void compute(Action action) {
    computing_ = true;
    action(session_.engine());
    computing_ = false;
  }
  /// Completes a step after `first_half`, which accumulates its gradients.
  StepResult settle(const engine::StepInput& input, const Total& total, Action first_half);
  void begin_step(std::int64_t step);
  /// Tells the launcher of a step.
  void tell_progress(std::int64_t step, double loss, std::int64_t positions);
  /// Tells the launcher of a save, again if it did not listen.
  void tell_save();
  [[nodiscard]] bool leads() const { return rank_.worker().rank == 0; }

  JoinedRank& rank_;
  std::int64_t number_;
  bool computing_ = false;  ///< the engine runs, or an exception has left it
  RunSetup setup_;
  std::int64_t outputs_;
  RankSession session_;
  comm::ControlGroup& control_;
  StreamView compute_;
  BatchRows rows_;
  std::optional<engine::StepCounts> counts_;  ///< none: it does not train

  /// A step by hand.
  struct OpenStep {
    engine::StepInput input;
    std::int64_t micro_batches = 0;  ///< run so far
    Total total{};                   ///< of these
  };
  std::optional<OpenStep> open_;

  double begun_at_seconds_ = 0;    ///< the step under way
  double settled_at_seconds_ = 0;  ///< the last step; 0: none yet
  engine::StepRate step_rate_;
  std::int64_t saved_step_ = 0;            ///< of the last checkpoint; 0: none
  std::optional<SaveAnswer> untold_save_;  ///< to be told yet
};

}  // namespace dstrain::session
