#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "runtime/base/function_ref.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::checkpoint {

/// A tensor of a shard and its current values.
struct ShardTensor {
  std::string name;
  HostView values;  ///< dense, f32, bf16 or f16
};

/// Writes a new safetensors file `root` / `path` of these tensors: reserves the space first, hashes
/// on the way, flushes at the end. On any error it removes the file and throws Error{io}; a failed
/// flush is never retried. Throws also if the file exists. Calls `on_piece` after each piece of
/// about 8 MiB that the kernel has accepted, to show progress.
FileRecord write_shard(
    const std::filesystem::path& root,
    const std::string& path,
    std::span<const ShardTensor> tensors,
    FunctionRef<void()> on_piece = [] {});

/// Writes a small text file in the same way.
FileRecord write_text(const std::filesystem::path& root,
                      const std::string& path,
                      std::string_view text);

/// Returns the record of an existing file. Throws Error{io}.
FileRecord record_file(const std::filesystem::path& root, const std::string& path);

}  // namespace dstrain::checkpoint
