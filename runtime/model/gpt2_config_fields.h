#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/gpt2_config.h"

namespace dstrain::model {

/// The fields of Gpt2Config as a table: parsing, overriding, checking and writing all go by it.
struct SizeField {
  std::string_view name;
  std::int64_t Gpt2Config::*member;
  std::int64_t max;        ///< far above any model, low enough that no product overflows
  std::string_view alias;  ///< the general name that Hugging Face accepts too; may be empty
};

struct RateField {
  std::string_view name;
  float Gpt2Config::*member;
  float max;           ///< the rate must be in [0, max)
  float hugging_face;  ///< value when config.json does not say
};

inline constexpr std::array<SizeField, 6> size_fields{{
    {"vocab_size", &Gpt2Config::vocab_size, 1 << 24, ""},
    {"n_positions", &Gpt2Config::n_positions, 1 << 24, "max_position_embeddings"},
    {"n_embd", &Gpt2Config::n_embd, 1 << 18, "hidden_size"},
    {"n_layer", &Gpt2Config::n_layer, 1 << 14, "num_hidden_layers"},
    {"n_head", &Gpt2Config::n_head, 1 << 14, "num_attention_heads"},
    {"n_inner", &Gpt2Config::n_inner, 1 << 20, ""},
}};

inline constexpr std::array<RateField, 5> rate_fields{{
    {"layer_norm_epsilon", &Gpt2Config::layer_norm_epsilon, 1, 1e-5F},
    {"initializer_range", &Gpt2Config::initializer_range, 100, 0.02F},
    {"embd_pdrop", &Gpt2Config::embd_pdrop, 1, 0.1F},
    {"attn_pdrop", &Gpt2Config::attn_pdrop, 1, 0.1F},
    {"resid_pdrop", &Gpt2Config::resid_pdrop, 1, 0.1F},
}};

/// "vocab_size, n_positions, ...".
std::string field_names();

/// One line per size or rate that is out of its range.
std::vector<std::string> range_problems(const Gpt2Config& config);

}  // namespace dstrain::model
