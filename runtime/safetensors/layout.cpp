#include "runtime/safetensors/layout.h"

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/units.h"

namespace dstrain::safetensors {

namespace {

const char* word_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::bf16:
      return "BF16";
    case DType::f16:
      return "F16";
    default:
      DSTRAIN_CHECK(false, "no safetensors of dtype {}", static_cast<int>(dtype));
  }
}

}  // namespace

Layout lay_out(std::span<const TensorInfo> tensors) {
  nlohmann::ordered_json header{{"__metadata__", {{"format", "pt"}}}};
  Layout layout;
  for (const auto& [name, dtype, shape] : tensors) {
    DSTRAIN_CHECK(!header.contains(name), "two tensors are named {}", name);
    const std::uint64_t begin = layout.bytes;
    layout.bytes += static_cast<std::uint64_t>(shape.numel() * size_of(dtype));
    layout.offsets.push_back(begin);
    const auto extents = shape.extents();
    header[name] = {{"dtype", word_of(dtype)},
                    {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
                    {"data_offsets", {begin, layout.bytes}}};
  }
  std::string text = header.dump();
  text.resize(static_cast<std::size_t>(round_up(static_cast<std::int64_t>(text.size()), 8)), ' ');
  const std::uint64_t text_bytes = text.size();
  layout.head.assign(reinterpret_cast<const char*>(&text_bytes), sizeof text_bytes);
  layout.head += text;
  for (std::uint64_t& offset : layout.offsets) offset += layout.head.size();
  layout.bytes += layout.head.size();
  return layout;
}

}  // namespace dstrain::safetensors
