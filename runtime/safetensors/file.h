#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_handle.h"

namespace dstrain::safetensors {

/// One tensor of a safetensors file. `dtype` is the file's own word for it ("F32", "BF16", "I64").
struct Entry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t numel = 0;
  std::uint64_t begin = 0;  ///< byte range within the file's data
  std::uint64_t end = 0;
};

/// Reads the JSON of a safetensors header and checks all of it against the `data_bytes` that follow
/// it in the file: known dtypes, sizes that fit their shapes, no name twice, no hole, no overlap,
/// nothing left over. `file` is for messages. Entries come sorted by position. Throws Error{input}.
std::vector<Entry> parse_header(std::string_view header,
                                std::uint64_t data_bytes,
                                const std::string& file);

/// An open safetensors file, checked whole when opened: whatever it claims, no more memory is used
/// than a small multiple of its header, which lies in the file. Safe from several threads.
class File {
 public:
  /// `name` is for messages. Throws Error{input} naming the file and the broken rule.
  File(UniqueFd fd, std::string name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

  /// Elements [begin, begin + values.size()) of a tensor of this file, row-major, as floats: F32 as
  /// they are, F16 and BF16 converted exactly. Throws Error{input} for another dtype, Error{io}
  /// when the disk fails or the file has shrunk.
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
