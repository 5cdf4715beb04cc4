#include "runtime/session/rank_disks.h"

#include <fmt/format.h>

#include "offload/make_file_io.h"
#include "offload/storage.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/os/shared_place.h"

namespace dstrain::session {
namespace {

/// Another rank may make the same directory.
void make_swap_directory(const std::string& directory) {
  const std::error_code error = make_directories(directory);
  if (!error) return;
  fail(ErrorCode::io, "nvme_path {}: cannot be made: {}", directory, error.message());
}

void warn_of_disk(const std::string& directory) {
  const char* const warning = offload::storage_warning(offload::storage_kind(directory));
  if (*warning != 0) log_warning(fmt::format("nvme_path {} {}", directory, warning));
}

}  // namespace

RankDisks::RankDisks(const Options& options, RankMemory& memory, profile::Timeline* timeline) {
  const auto& [offload, aio, zero, worker] = options;
  const bool states = offload.optimizer == MemoryTier::nvme;
  const bool shards = offload.parameters == MemoryTier::nvme;
  if (!states && !shards) return;
  offload::MadeFileIo made = offload::make_file_io({.block_size = aio.block_size,
                                                    .queue_depth = aio.queue_depth,
                                                    .threads = aio.threads,
                                                    .single_submit = aio.single_submit,
                                                    .overlap_events = aio.overlap_events},
                                                   worker.io, timeline);
  if (worker.rank == 0 && !made.fallback.empty()) log_warning(made.fallback);
  io_ = std::move(made.io);
  if (states) make_swap_directory(zero.offload_optimizer.nvme_path);
  if (shards) make_swap_directory(zero.offload_param.nvme_path);
  if (worker.rank == 0 && states) warn_of_disk(zero.offload_optimizer.nvme_path);
  if (worker.rank == 0 && shards &&
      zero.offload_param.nvme_path != zero.offload_optimizer.nvme_path)
    warn_of_disk(zero.offload_param.nvme_path);
  MemoryResource& buffers = memory.of(offload.staging).staging;
  MemoryLedger& ledger = memory.ledger(MemoryTier::nvme);
  if (states) {
    const std::string& directory = zero.offload_optimizer.nvme_path;
    optimizer_.emplace(zero::SwapFolder{*io_, directory, buffers, ledger});
    mapped_.emplace(directory);
    staging_.emplace(*mapped_, ledger, TrackedMemory::Options{MemoryCategory::buffers});
  }
  if (shards) {
    parameters_.emplace(zero::SwapFolder{*io_, zero.offload_param.nvme_path, buffers, ledger});
  }
}

}  // namespace dstrain::session
