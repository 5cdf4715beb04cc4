#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_handle.h"
#include "runtime/safetensors/header.h"

namespace dstrain::safetensors {

/// An open safetensors file, checked whole when opened: whatever it claims, no more memory is used
/// than a small multiple of its header, which lies in the file. Safe from several threads.
class File {
 public:
  /// `name` is for messages. Throws Error{input} naming the file and the broken rule.
  File(UniqueFd fd, std::string name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

  /// Elements [begin, begin + values.size()) of a tensor of this file, row-major, as floats: F32 as
  /// they are, F16 and BF16 converted exactly, F64 rounded. Throws Error{input} for another dtype,
  /// Error{io} when the disk fails or the file has shrunk.
  void read(const Entry& entry, std::int64_t begin, std::span<float> values) const;

 private:
  UniqueFd fd_;
  std::string name_;
  std::uint64_t data_offset_ = 0;
  std::vector<Entry> entries_;
};

/// Whether File::read converts this dtype.
bool is_readable_dtype(std::string_view dtype);

}  // namespace dstrain::safetensors
