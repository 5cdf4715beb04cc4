#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_handle.h"
#include "runtime/safetensors/header.h"

namespace dstrain::safetensors {

/// An open safetensors file, fully checked when it is opened. Whatever the file claims, checking
/// uses only a small multiple of the memory of its header. Thread-safe.
class File {
 public:
  /// `name` is for messages. Throws Error{input} with the file and the broken rule.
  File(UniqueFd fd, std::string name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

  /// Reads elements [begin, begin + values.size()) of a tensor of this file, row-major, as floats:
  /// F32 unchanged, F16 and BF16 converted exactly, F64 rounded. Throws Error{input} for other
  /// dtypes, Error{io} if the disk fails or the file has shrunk.
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
