#pragma once
#include <memory>
#include <optional>

#include "offload/file_io.h"
#include "offload/mapped_memory.h"
#include "runtime/config/train_settings.h"
#include "runtime/profile/timeline.h"
#include "runtime/rank/worker_env.h"
#include "runtime/session/rank_memory.h"
#include "zero/offload.h"
#include "zero/swap_folder.h"

namespace dstrain::session {

/// The disks that a rank swaps to, and the I/O on them; none if nothing is swapped.
class RankDisks {
 public:
  struct Options {
    const zero::Offload& offload;
    const config::AioSettings& aio;
    const config::ZeroSettings& zero;  ///< has the directories
    const WorkerEnv& worker;
  };
  /// `memory` and `timeline` must outlive it. Throws Error{io} if a directory cannot be made, or if
  /// the requested kind of I/O is not available.
  RankDisks(const Options& options, RankMemory& memory, profile::Timeline* timeline);
  [[nodiscard]] const zero::SwapFolder* optimizer() const { return get(optimizer_); }
  [[nodiscard]] const zero::SwapFolder* parameters() const { return get(parameters_); }
  /// Memory for the copy that a save writes if the states are on a disk; else null.
  [[nodiscard]] MemoryResource* staging() { return staging_ ? &*staging_ : nullptr; }

 private:
  static const zero::SwapFolder* get(const std::optional<zero::SwapFolder>& folder) {
    return folder ? &*folder : nullptr;
  }
  std::unique_ptr<offload::AsyncFileIo> io_;
  std::optional<zero::SwapFolder> optimizer_;
  std::optional<zero::SwapFolder> parameters_;
  std::optional<offload::MappedMemory> mapped_;
  std::optional<TrackedMemory> staging_;
};

}  // namespace dstrain::session
