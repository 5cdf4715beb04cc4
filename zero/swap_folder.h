#pragma once
#include <filesystem>

#include "offload/file_io.h"
#include "runtime/device/memory_resource.h"

namespace dstrain::zero {

/// Where and how a rank swaps to disk.
struct SwapFolder {
  offload::AsyncFileIo& io;
  std::filesystem::path directory;
  MemoryResource& buffers;  ///< of the host, for what is on its way
  MemoryLedger& ledger;     ///< of MemoryTier::nvme: the space taken
};

}  // namespace dstrain::zero
