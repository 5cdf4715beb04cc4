#pragma once
#include <cstddef>
#include <filesystem>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/model/hf_export.h"

namespace dstrain::checkpoint {

struct Exported {
  std::int64_t parameters = 0;  ///< elements
  std::size_t files = 0;        ///< files with weights
};

/// Writes the weights of a checkpoint (see weights_of) and its companion files as a Hugging Face
/// directory (see model::HfExport), rounded to the given dtype. Weights stream through in pieces of
/// a few MiB and are checked as they are read. Throws Error{input} for damage, and for a value that
/// the dtype cannot hold, naming the tensor; Error{io} as HfExport.
Exported export_checkpoint(const Checkpoint& checkpoint,
                           const std::filesystem::path& output,
                           model::HfExportOptions options);

}  // namespace dstrain::checkpoint
