#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

// The JSON at the start of a safetensors file, read and written.
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

/// "BF16": what headers call f32, bf16 and f16.
const char* dtype_name(DType dtype);

/// A tensor to be written: f32, bf16 or f16.
struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

/// A file as it will be: what precedes the data, and where each tensor lies.
struct Layout {
  std::string head;                    ///< the length word and the header, padded to 8 bytes
  std::vector<std::uint64_t> offsets;  ///< first byte of each tensor in the file, in their order
  std::uint64_t bytes = 0;             ///< of the whole file
};

/// Tensors lie in the order given, without holes. Names must differ.
Layout lay_out(std::span<const TensorInfo> tensors);

}  // namespace dstrain::safetensors
