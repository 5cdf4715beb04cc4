#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/tensor/dtype.h"

namespace dstrain::model {

/// The weight of a head that is not the token embedding.
inline constexpr std::string_view hf_head = "lm_head.weight";

/// The names of a model's parameters in Hugging Face's files. All views are of constants.
struct HfNames {
  /// The prefix of all parameters but hf_head in the class with a head; the class without one does
  /// not have it.
  std::string_view prefix{};
  /// Name endings of tensors in some files that are not parameters.
  std::span<const std::string_view> buffers{};
  /// A tensor that some files store in addition to the parameter that it is tied to, such as a
  /// head.
  struct Tied {
    std::string_view name{};
    std::string_view parameter{};
  };
  std::span<const Tied> tied{};
};

/// Returns "transformer.h.0.ln_1.weight" for "h.0.ln_1.weight".
std::string hf_name(std::string_view prefix, std::string_view parameter);

/// Returns the value of config.json's torch_dtype.
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

/// Sets the dtype of the weights in a config.json: torch_dtype, and, if present, dtype, the newer
/// key. Throws Error{input}.
std::string with_torch_dtype(std::string_view config_json, DType dtype);

/// The ids of a tokenizer's tokens for the begin and end of texts.
struct TextTokens {
  std::optional<std::int32_t> begin;
  std::optional<std::int32_t> end;
};

/// Sets bos_token_id and eos_token_id in a config.json or generation_config.json; null for none. A
/// list that holds the id already stays, as do other tokens that end a text. Throws Error{input}.
std::string with_text_tokens(std::string_view config_json, const TextTokens& tokens);

}  // namespace dstrain::model
