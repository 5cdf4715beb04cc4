#pragma once
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/tensor/dtype.h"

namespace dstrain::model {

/// What GPT2LMHeadModel puts before the names of its parameters.
inline constexpr std::string_view hf_prefix = "transformer.";

/// The value of config.json's torch_dtype.
constexpr std::string_view torch_dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float32";
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    default:
      DSTRAIN_CHECK(false, "no weights have dtype {}", static_cast<int>(dtype));
  }
}

}  // namespace dstrain::model
