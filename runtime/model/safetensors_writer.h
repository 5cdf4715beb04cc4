#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "runtime/base/unique_fd.h"
#include "runtime/model/parameter.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::model {

/// Writes a safetensors file of tensors of one dtype (f32 or bf16) piece by piece, so that no
/// tensor needs to be whole in memory. The file appears at `finish()`, complete and flushed to
/// disk, or not at all. One thread at a time.
class SafetensorsWriter {
 public:
  /// Writes the header and reserves the space: a full disk is found here. Tensors lie in the file
  /// in the order of their names, each under `prefix` + name. Throws Error{io}.
  SafetensorsWriter(std::filesystem::path path,
                    std::span<const ParameterSpec> tensors,
                    DType dtype,
                    const std::string& prefix = "");
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
  SafetensorsWriter(SafetensorsWriter&&) = delete;
  SafetensorsWriter& operator=(SafetensorsWriter&&) = delete;
  ~SafetensorsWriter();

  /// Appends the next elements of a tensor, row-major, in the file's dtype. Tensors may be written
  /// in any order.
  void write(const std::string& name, TensorView values);

  /// Checks that every tensor is complete, flushes and renames. Call once, last.
  void finish();

 private:
  struct Progress {
    std::uint64_t offset = 0;  ///< of the next byte, in the file
    std::uint64_t end = 0;
  };

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  DType dtype_;
  UniqueFd fd_;  ///< of the temporary file, until finish()
  std::map<std::string, Progress> progress_;
};

}  // namespace dstrain::model
