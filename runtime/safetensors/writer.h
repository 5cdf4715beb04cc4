#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "runtime/base/unique_handle.h"
#include "runtime/safetensors/header.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::safetensors {

/// Writes a safetensors file piece by piece, so that no tensor has to be in memory as a whole. The
/// file appears at `finish()`, complete and flushed, or not at all. Not thread-safe.
class Writer {
 public:
  /// Writes the header and reserves the space, so that a full disk is found here. Tensors are
  /// placed in the given order. Throws Error{io}.
  Writer(std::filesystem::path path, std::span<const TensorInfo> tensors);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  Writer(Writer&&) = delete;
  Writer& operator=(Writer&&) = delete;
  ~Writer();

  /// Appends the next elements of a tensor, row-major, in its dtype. Tensors may be written
  /// in any order.
  void write(const std::string& name, HostView values);

  /// Checks that every tensor is complete and flushes; the file does not have its name yet. Use it
  /// to finish several files together; finish() includes it.
  void flush();

  /// Flushes and renames. Call once, last.
  void finish();

 private:
  struct Unwritten {
    DType dtype = DType::f32;
    std::uint64_t offset = 0;  ///< position of the next byte in the file
    std::uint64_t end = 0;
  };

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  UniqueFd fd_;                                 ///< of the temporary file, until finish()
  std::map<std::string, Unwritten> unwritten_;  ///< by tensor name
};

}  // namespace dstrain::safetensors
