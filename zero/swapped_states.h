#pragma once
#include <span>
#include <vector>

#include "offload/record_swap.h"
#include "runtime/base/exact_sum.h"
#include "runtime/base/function_ref.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/engine/state_store.h"
#include "zero/disk_place.h"
#include "zero/run_order.h"
#include "zero/state_record.h"
#include "zero/state_runs.h"

namespace dstrain::zero {

/// Optimizer states that lie on a disk, each run with its gradients in one record: gradients are
/// written as they are summed; a step reads a run with the next one behind it, and writes back the
/// states alone. A run may also be updated while its gradients are put: then the new states wait
/// for accept() (EarlyUpdate::revocable: in a second record, beside the old ones), or for a step
/// that updates the old ones again. All must outlive it. One thread at a time.
class SwappedStates final : public engine::StateStore {
 public:
  /// Updates the states of a run.
  using Update = FunctionRef<void(const StateRun& run, const engine::StateLease& lease)>;

  SwappedStates(std::span<const StateRun> runs,
                const Offload& offload,
                const DiskPlace& place,
                StreamView stream);
  static Bytes gradient_bytes(std::span<const StateRun> runs, const Offload& offload);
  static Bytes state_bytes(std::span<const StateRun> runs, const Offload& offload);
  static Bytes buffer_bytes(std::span<const StateRun> runs, const Offload& offload);

  engine::StateLease acquire(int run, engine::StateUse use, StreamView stream) override;
  void release(int run, engine::StateUse use, StreamView stream) override;

  /// What is put from now on belongs to this micro step. `early`: in the last one put() updates.
  void begin(engine::MicroStep micro_step, bool early);
  /// Takes this rank's shard of a segment's gradients, summed over the ranks, and adds it to what
  /// the micro steps before have put there. `stream` computes in line: the values may change once
  /// this returns. Throws Error{io}.
  void put(int segment, TensorView gradients, Update update, StreamView stream);
  /// Of all that was put, once the last micro step is done.
  [[nodiscard]] const ExactSum& squares() const { return squares_; }
  /// What was updated early counts.
  void accept();

 private:
  struct Run {
    StateRun place;
    StateRecord layout;
    int record = 0;      ///< that holds it
    int new_record = 0;  ///< that an early update writes: another one, if that can be revoked
    bool early = false;  ///< was updated so, and not accepted
  };
  Run& run_of(int run) { return runs_[static_cast<std::size_t>(run)]; }
  [[nodiscard]] bool updates_early() const { return early_ && micro_step_.last(); }
  std::span<std::byte> fetch(int run, RecordParts parts, const RunOrder& order);
  engine::StateLease lease(const Run& run, std::span<std::byte> record, TensorView gradients);
  void add_run(int run, TensorView gradients, StreamView stream);
  void update_run(int run, TensorView gradients, Update update, StreamView stream);

  std::vector<Run> runs_;
  bool read_ahead_;
  offload::RecordSwap swap_;
  std::vector<TensorView> states_;  ///< of the run in use
  RunOrder by_number_;
  RunOrder by_put_;
  engine::MicroStep micro_step_;
  bool early_ = false;
  ExactSum squares_;
};

}  // namespace dstrain::zero
