#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/ops/rotary.h"

namespace dstrain::model {

/// How rotary position embeddings are stretched for sequences longer than a model was first trained
/// on; the kinds, their names and their numbers are those of Hugging Face's rope_scaling.
struct RopeScaling {
  enum class Kind : std::int8_t { none, linear, llama3, yarn, longrope };
  Kind kind = Kind::none;
  float factor = 1;  ///< longrope: 0 for positions / original_positions
  /// That the model was first trained on: llama3, yarn, longrope.
  std::int64_t original_positions = 0;
  float low_freq_factor = 1;  ///< llama3
  float high_freq_factor = 4;
  float beta_fast = 32;  ///< yarn
  float beta_slow = 1;
  /// Of sines and cosines. Longrope: 0 for what follows from the factor.
  float attention_factor = 1;
  bool truncate = true;  ///< yarn: the range of dimensions that is corrected is whole
  /// Longrope: what the frequencies are divided by, one each, in sequences of up to
  /// original_positions tokens and in longer ones.
  std::vector<float> short_factors{};
  std::vector<float> long_factors{};
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

/// What a family's config.json says of rotations in keys that its own table has.
struct RopeKeys {
  bool partial = false;  ///< partial_rotary_factor; else only 1 is built
  /// original_max_position_embeddings. 0: it has no such key, and may have all kinds of scaling;
  /// else only longrope, which it may also call "su".
  std::int64_t original_positions = 0;
};

/// One of the two keys under which a config.json says how positions turn, and what stands there.
struct RopeSection {
  const char* key;
  const nlohmann::json* values;
};

/// Those that say anything: rope_parameters, as transformers 5 writes it, before rope_scaling.
/// Throws Error{input} for one that is no object.
std::vector<RopeSection> rope_sections(const nlohmann::json& document, const std::string& path);

/// Of a config.json. Throws Error{input} that names what is not built or out of range, or is said
/// in two places that disagree.
RopeScaling read_rope_scaling(const nlohmann::json& document,
                              const std::string& path,
                              const RopeKeys& keys);

/// How many features of a head turn, and how far a model's positions go.
struct RotarySizes {
  std::int64_t dims = 0;
  std::int64_t positions = 0;
};
/// The frequencies are those of transformers' modeling_rope_utils, computed in f32 as there:
/// theta^(-2 i / dims), scaled.
ops::Rotary make_rotary(const RotarySizes& sizes, float theta, const RopeScaling& scaling);

/// The value of rope_scaling that reads back as the same; "null" for none.
std::string to_json_text(const RopeScaling& scaling);

}  // namespace dstrain::model
