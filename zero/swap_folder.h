#pragma once
#include <filesystem>

#include "offload/file_io.h"
#include "runtime/device/memory_resource.h"

namespace dstrain::zero {

/// A directory that a rank swaps to, with the I/O and the memory that this takes.
struct SwapFolder {
  offload::AsyncFileIo& io;
  std::filesystem::path directory;
  MemoryResource& buffers;  ///< of the host, for transfers
  MemoryLedger& ledger;     ///< of MemoryTier::nvme: the disk space taken
};

}  // namespace dstrain::zero
