#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

// Reads and writes the JSON at the start of a safetensors file.
namespace dstrain::safetensors {

/// One tensor of a safetensors file. `dtype` is as in the file ("F32", "BF16", "I64").
struct Entry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t numel = 0;
  std::uint64_t begin = 0;  ///< byte range within the file's data
  std::uint64_t end = 0;
};

/// Parses the JSON of a safetensors header and checks it against the `data_bytes` that follow it in
/// the file: known dtypes, sizes that match their shapes, no duplicate names, no gaps, no overlaps,
/// no rest. `file` is for messages. Returns the entries sorted by position. Throws Error{input}.
std::vector<Entry> parse_header(std::string_view header,
                                std::uint64_t data_bytes,
                                const std::string& file);

/// Returns the name of f32, bf16 or f16 in headers: "BF16".
const char* dtype_name(DType dtype);

/// A tensor to be written: f32, bf16 or f16.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

/// The layout of a new file: the bytes before the data, and the position of each tensor.
struct Layout {
  std::string head;                    ///< header size and header, padded to 8 bytes
  std::vector<std::uint64_t> offsets;  ///< position of each tensor in the file, in their order
  std::uint64_t bytes = 0;             ///< size of the whole file
};

/// Places the tensors in the given order, without gaps. Names must be unique.
Layout lay_out(std::span<const TensorInfo> tensors);

}  // namespace dstrain::safetensors
