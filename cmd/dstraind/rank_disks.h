#pragma once
#include <memory>
#include <optional>

#include "cmd/dstraind/rank_memory.h"
#include "cmd/train_setup.h"
#include "offload/file_io.h"
#include "offload/mapped_memory.h"
#include "runtime/rank/worker_env.h"
#include "zero/swap_folder.h"

namespace dstrain::cmd {

/// The disks that a rank swaps to, and what reads and writes them; none where nothing is swapped.
class RankDisks {
 public:
  /// All must outlive it. Throws Error{io} where the I/O that is asked for cannot be had.
  RankDisks(const TrainSetup& setup,
            const WorkerEnv& worker,
            RankMemory& memory,
            profile::Timeline* timeline);
  [[nodiscard]] const zero::SwapFolder* optimizer() const { return get(optimizer_); }
  [[nodiscard]] const zero::SwapFolder* parameters() const { return get(parameters_); }
  /// For the copy that a save writes, when the states lie on a disk; else null.
  [[nodiscard]] MemoryResource* staging() { return staging_ ? &*staging_ : nullptr; }

 private:
  static const zero::SwapFolder* get(const std::optional<zero::SwapFolder>& place) {
    return place ? &*place : nullptr;
  }
  std::unique_ptr<offload::AsyncFileIo> io_;
  std::optional<zero::SwapFolder> optimizer_;
  std::optional<zero::SwapFolder> parameters_;
  std::optional<offload::MappedMemory> mapped_;
  std::optional<TrackedMemory> staging_;
};

}  // namespace dstrain::cmd
