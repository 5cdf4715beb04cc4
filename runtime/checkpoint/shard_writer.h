#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "runtime/base/function_ref.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::checkpoint {

/// A tensor of a shard and where its values lie now.
struct ShardTensor {
  std::string name;
  HostView values;  ///< dense, f32, bf16 or f16
};

/// Writes a new safetensors file `root` / `path` of these tensors: reserves the space first, hashes
/// on the way, flushes at the end. On any error the file is removed and Error{io} thrown: what a
/// failed flush left is never tried again. Throws too when the file is there already. Calls
/// `on_piece` after each piece of some 8 MiB that the kernel has taken, for whoever watches.
FileRecord write_shard(
    const std::filesystem::path& root,
    const std::string& path,
    std::span<const ShardTensor> tensors,
    FunctionRef<void()> on_piece = [] {});

/// Likewise a small text file.
FileRecord write_text(const std::filesystem::path& root,
                      const std::string& path,
                      std::string_view text);

/// The record of a file that is there. Throws Error{io}.
FileRecord record_file(const std::filesystem::path& root, const std::string& path);

}  // namespace dstrain::checkpoint
