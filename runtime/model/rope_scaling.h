#pragma once
#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "runtime/ops/rotary.h"

namespace dstrain::model {

/// How rotary position embeddings are stretched for sequences longer than a model was first trained
/// on; the kinds, their names and their numbers are those of Hugging Face's rope_scaling.
struct RopeScaling {
  enum class Kind : std::int8_t { none, linear, llama3, yarn };
  Kind kind = Kind::none;
  float factor = 1;
  std::int64_t original_positions = 0;  ///< that the model was first trained on: llama3, yarn
  float low_freq_factor = 1;            ///< llama3
  float high_freq_factor = 4;
  float beta_fast = 32;  ///< yarn
  float beta_slow = 1;
  float attention_factor = 1;  ///< of sines and cosines
  bool truncate = true;        ///< yarn: the range of dimensions that is corrected is whole
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

/// Of a config.json: rope_scaling, or rope_parameters of newer ones. Throws Error{input} that names
/// what is not built or out of range.
RopeScaling read_rope_scaling(const nlohmann::json& document, const std::string& path);

/// What turns heads of `dims` features. The frequencies are those of transformers'
/// modeling_rope_utils, computed in f32 as there: theta^(-2 i / dims), scaled.
ops::Rotary make_rotary(std::int64_t dims, float theta, const RopeScaling& scaling);

/// The value of rope_scaling that reads back as the same; "null" for none.
std::string to_json_text(const RopeScaling& scaling);

}  // namespace dstrain::model
