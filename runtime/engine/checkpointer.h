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
/// steps. A save has three phases, each on a background thread. Every rank writes its shard; then
/// the committing rank gets the records of all files and commits; then checkpoints beyond the limit
/// are removed. The trainer passes the states of all ranks to advance() each step. If a rank fails,
/// all ranks give the save up with one warning; earlier checkpoints stay.
class Checkpointer {
 public:
  using State = BackgroundTask::State;

  /// All must outlive the checkpointer.
  struct Inputs {
    const model::Model& model;
    ParameterStore& store;
    comm::ControlGroup& control;
    /// The ranks that write into this rank's directory, in order: all, or those of a node. The
    /// first of them creates and commits the directory.
    std::vector<int> directory_ranks;
    MemoryResource& staging;
    std::function<void(const std::string&)> say;  ///< "saved OUTPUT_DIR/checkpoint-N", on rank 0
    /// Flushes files that belong to a checkpoint and are outside its directory. Called on the
    /// thread of the commit.
    std::function<void()> flush_beside{};
    ProgressPage* progress = nullptr;  ///< null: nothing is published
  };
  struct Options {
    std::filesystem::path output;
    std::string ds_config;         ///< the text of ds_config.json
    std::int64_t total_limit = 0;  ///< most checkpoints that are kept; 0: all
    bool keeps_best = false;       ///< the best one is kept and does not count
    bool whole_model = false;      ///< a checkpoint also holds the model as one file
    std::int64_t saved_step = 0;   ///< of the checkpoint in `output` that the run resumed from
    double visible_seconds = dstrain::visible_seconds;  ///< until hosts see each other's files
  };
  /// Removes files that dead runs have left in `output`.
  Checkpointer(Inputs inputs, Options options, StreamView stream);

  /// Makes the system calls of a save of this step on small files, and removes these. A file system
  /// that refuses them is found before training, not hours later. Warns of failures that may pass,
  /// such as a full disk. Collective. Throws Error{usage} on every rank for any other failure.
  void rehearse(std::int64_t step);
  /// Begins a save, after waiting for the one before. Collective.
  void begin(const TrainerState& state);
  /// The state that this rank reports to the others.
  [[nodiscard]] State state() const { return task_.state(); }
  /// Begins the next phase if every rank is done with this one. Collective.
  void advance(std::span<const State> ranks);
  /// Waits until no save is under way. Collective.
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
  /// Sets path_. Returns the failure if this rank could not create the directory.
  [[nodiscard]] std::optional<Error> make_directory();
  /// One state for each file that this rank writes.
  [[nodiscard]] std::vector<checkpoint::StateRecord> own_files() const;
  [[nodiscard]] std::string shard_path(const checkpoint::StateRecord& state) const;
  /// Waits until this host sees path_. Throws Error{io} that names it.
  void await_directory() const;
  void rehearse_writing() const;
  /// The failure of the first rank that has one; the same on every rank.
  [[nodiscard]] std::optional<Error> first_failure(const std::optional<Error>& own) const;
  void save_whole_model();
  void stage();
  /// Begins a phase on the background thread.
  void start(std::function<void()> work);
  void write_shard();
  void say_progress() const;
  void start_commit();
  /// Both are from encode_records(), by rank: `all` of all ranks, `here` of those in this
  /// directory.
  void commit(const std::vector<std::string>& all, const std::vector<std::string>& here);
  void acknowledge();
  void give_up();
  [[nodiscard]] checkpoint::Manifest describe() const;

  Inputs inputs_;
  Options options_;
  StreamView stream_;
  StagedShard staged_;
  Bytes checkpoint_bytes_ = 0;  ///< of the tensors of all ranks
  /// How long a rank waits for a directory made on another host; 0: all ranks are on one host.
  double visible_seconds_ = 0;
  Phase phase_ = Phase::none;
  std::vector<std::int64_t> whole_;  ///< steps of checkpoints that this run has read or written
  std::string failure_;

  // The save under way:
  std::int64_t step_ = 0;
  std::string state_text_;
  std::string best_;            ///< name of the checkpoint that is never pruned; empty: none
  std::filesystem::path path_;  ///< where this rank writes; empty: no directory was made
  std::unique_ptr<checkpoint::PendingCheckpoint> pending_;  ///< on a rank that commits
  std::vector<checkpoint::FileRecord> files_;               ///< written by this rank
  BackgroundTask task_;  ///< uses all members above, so it is destroyed first
};

}  // namespace dstrain::engine
