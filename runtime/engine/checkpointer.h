#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/checkpoint/pending_checkpoint.h"
#include "runtime/comm/control/control_group.h"
#include "runtime/engine/background_task.h"
#include "runtime/engine/staged_shard.h"
#include "runtime/engine/trainer_state.h"
#include "runtime/os/visibility.h"
#include "runtime/rank/progress_page.h"

namespace dstrain::engine {

/// Saves checkpoints while training goes on. Every rank holds one and makes the same calls, between
/// steps. A save goes through three phases, each on a thread of its own: every rank writes its
/// shard; when all have, the records of their files go to the rank that commits; when that is done,
/// what is more than the limit is removed. The ranks learn of each other's progress from
/// advance(), which the trainer calls each step with the votes of all. What fails on one rank is
/// given up by all, with one warning; what was saved before stays.
class Checkpointer {
 public:
  using State = BackgroundTask::State;

  /// All must outlive it.
  struct Inputs {
    const model::Model& model;
    ParameterStore& store;
    comm::ControlGroup& control;
    /// The ranks that write into this one's directory, in order: all, or those of a node. The first
    /// of them makes and commits it.
    std::vector<int> directory_ranks;
    MemoryResource& staging;
    std::function<void(const std::string&)> say;  ///< "saved OUTPUT_DIR/checkpoint-N", on rank 0
    /// Flushes what goes with a checkpoint and lies beside it. Called on the thread of the commit.
    std::function<void()> flush_beside{};
    ProgressPage* progress = nullptr;  ///< null: nothing is published
  };
  struct Options {
    std::filesystem::path output;
    std::string ds_config;         ///< the text of ds_config.json
    std::int64_t total_limit = 0;  ///< 0: all are kept
    bool keeps_best = false;       ///< the best one does not count, and stays
    bool whole_model = false;      ///< a checkpoint also holds the model as one file
    std::int64_t saved_step = 0;   ///< of the checkpoint in `output` that the run began with
    double visible_seconds = dstrain::visible_seconds;  ///< until hosts see each other's files
  };
  /// Removes what dead runs have left in `output`.
  Checkpointer(Inputs inputs, Options options, StreamView stream);

  /// Makes the system calls of a save of this step on small files, and removes these: what the file
  /// system refuses is found before training, not hours later. Warns of a failure that may pass, as
  /// of a full disk. Collective. Throws Error{usage} on every rank for any other.
  void rehearse(std::int64_t step);
  /// Begins to save; waits for the save before. Collective.
  void begin(const TrainerState& state);
  /// This rank's part of the vote.
  [[nodiscard]] State state() const { return task_.state(); }
  /// Takes the next phase when every rank is through with this one. Collective.
  void advance(std::span<const State> ranks);
  /// Waits until nothing is under way. Collective.
  void finish();

  /// The step of the last checkpoint that is whole and flushed; 0: none.
  [[nodiscard]] std::int64_t saved_step() const { return whole_.empty() ? 0 : whole_.back(); }
  /// The step of the checkpoint that is being written; 0: none.
  [[nodiscard]] std::int64_t saving_step() const {
    return phase_ == Phase::writing || phase_ == Phase::committing ? step_ : 0;
  }
  /// Why the last save was given up; the same on every rank.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// OUTPUT_DIR/checkpoint-N.
  [[nodiscard]] std::filesystem::path path_of(std::int64_t step) const;

 private:
  enum class Phase { none, writing, committing, pruning };

  [[nodiscard]] bool speaks() const { return inputs_.control.rank() == 0; }
  [[nodiscard]] bool commits() const {
    return inputs_.control.rank() == inputs_.directory_ranks.front();
  }
  [[nodiscard]] std::vector<std::string> of_directory(const std::vector<std::string>& all) const;
  /// Sets path_. Returns why this rank could not make it.
  [[nodiscard]] std::optional<Error> make_directory();
  /// A state of each file that this rank writes.
  [[nodiscard]] std::vector<checkpoint::StateRecord> own_files() const;
  [[nodiscard]] std::string shard_path(const checkpoint::StateRecord& state) const;
  /// Waits until this host sees path_. Throws Error{io} that names it.
  void await_directory() const;
  void rehearse_writing() const;
  /// That of the first rank that has one; the same on every rank.
  [[nodiscard]] std::optional<Error> first_failure(const std::optional<Error>& own) const;
  void save_whole_model();
  void stage();
  /// Begins a phase on the thread beside training.
  void start(std::function<void()> work);
  void write_shard();
  void say_progress() const;
  void start_commit();
  /// Both as encode_records() gives them, by rank: of all files, and of those in this directory.
  void commit(const std::vector<std::string>& all, const std::vector<std::string>& here);
  void acknowledge();
  void give_up();
  [[nodiscard]] checkpoint::Manifest describe() const;

  Inputs inputs_;
  Options options_;
  StreamView stream_;
  StagedShard staged_;
  Bytes checkpoint_bytes_ = 0;  ///< of the tensors of all ranks
  /// How long a rank waits for what one of another host has made; 0: there is none.
  double visible_seconds_ = 0;
  Phase phase_ = Phase::none;
  std::vector<std::int64_t> whole_;  ///< steps of checkpoints that this run has read or written
  std::string failure_;

  // Of the save under way.
  std::int64_t step_ = 0;
  std::string state_text_;
  std::string best_;  ///< the name of the checkpoint that is not pruned; empty: there is none
  std::filesystem::path path_;  ///< where this rank writes; empty: there is no directory
  std::unique_ptr<checkpoint::PendingCheckpoint> pending_;  ///< where this rank commits
  std::vector<checkpoint::FileRecord> files_;               ///< that this rank has written
  BackgroundTask task_;                                     ///< uses all of the above: goes first
};

}  // namespace dstrain::engine
