#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/ops/rotary.h"

namespace dstrain::model {

/// The scaling of rotary position embeddings for sequences longer than in a model's first training.
/// The kinds, names and numbers are those of Hugging Face's rope_scaling.
struct RopeScaling {
  enum class Kind : std::int8_t { none, linear, llama3, yarn, longrope };
  Kind kind = Kind::none;
  float factor = 1;  ///< longrope: 0 for positions / original_positions
  /// Positions in the first training: llama3, yarn, longrope.
  std::int64_t original_positions = 0;
  float low_freq_factor = 1;  ///< llama3
  float high_freq_factor = 4;
  float beta_fast = 32;  ///< yarn
  float beta_slow = 1;
  /// Factor of sines and cosines. Longrope: 0 to derive it from `factor`.
  float attention_factor = 1;
  bool truncate = true;  ///< yarn: round the range of corrected dimensions to integers
  /// Longrope: divisors of the frequencies, one each, in sequences of up to original_positions
  /// tokens and in longer ones.
  std::vector<float> short_factors{};
  std::vector<float> long_factors{};
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

/// The keys of a family's config.json for rotations that are in the family's own table.
struct RopeKeys {
  bool partial = false;  ///< has partial_rotary_factor; else only 1 is supported
  /// The value of original_max_position_embeddings. 0: the family does not have this key, and may
  /// have all kinds of scaling; else only longrope, which it may also call "su".
  std::int64_t original_positions = 0;
};

/// One of the two keys of config.json for the rotation of positions, and its value.
struct RopeSection {
  const char* key;
  const nlohmann::json* values;
};

/// Returns the keys with a value: rope_parameters, as transformers 5 writes it, before
/// rope_scaling. Throws Error{input} for one that is not an object.
std::vector<RopeSection> rope_sections(const nlohmann::json& document, const std::string& path);

/// Reads the scaling from a config.json. Throws Error{input} that names what is unsupported, out of
/// range, or given twice with different values.
RopeScaling read_rope_scaling(const nlohmann::json& document,
                              const std::string& path,
                              const RopeKeys& keys);

/// The rotated features of a head, and the number of a model's positions.
struct RotarySizes {
  std::int64_t dims = 0;
  std::int64_t positions = 0;
};
/// Returns the frequencies of transformers' modeling_rope_utils, computed in f32 as there:
/// theta^(-2 i / dims), scaled.
ops::Rotary make_rotary(const RotarySizes& sizes, float theta, const RopeScaling& scaling);

/// Returns the value of rope_scaling that reads back as the same; "null" for none.
std::string to_json_text(const RopeScaling& scaling);

}  // namespace dstrain::model
