#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/tensor/dtype.h"

namespace dstrain::model {

/// The weight of a head that is no token embedding.
inline constexpr std::string_view hf_head = "lm_head.weight";

/// How the files of Hugging Face name the parameters of a model. All views are of constants.
struct HfNames {
  /// What the class with a head puts before the names of all parameters but hf_head, and the one
  /// without does not.
  std::string_view prefix{};
  /// How the names of tensors end that some files have and that are no parameters.
  std::span<const std::string_view> buffers{};
  /// A tensor that some files have beside the parameter that it is tied to, such as a head.
  struct Tied {
    std::string_view name{};
    std::string_view parameter{};
  };
  std::span<const Tied> tied{};
};

/// "transformer.h.0.ln_1.weight" of "h.0.ln_1.weight".
std::string hf_name(std::string_view prefix, std::string_view parameter);

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

/// The text of a config.json with the dtype of its weights: torch_dtype, and dtype, which newer
/// ones have, where it is there. Throws Error{input}.
std::string with_torch_dtype(std::string_view config_json, DType dtype);

/// The ids of the tokens that begin and end texts, as a tokenizer names them.
struct TextTokens {
  std::optional<std::int32_t> begin;
  std::optional<std::int32_t> end;
};

/// The text of a config.json or generation_config.json with these as bos_token_id and eos_token_id;
/// null for none. A list that holds the id already stays, as do the other tokens that end a text.
/// Throws Error{input}.
std::string with_text_tokens(std::string_view config_json, const TextTokens& tokens);

}  // namespace dstrain::model
