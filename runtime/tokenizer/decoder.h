#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/tokenizer/growth_limit.h"
#include "runtime/tokenizer/json_field.h"

namespace dstrain::tokenizer {

/// A step of decoding. It rewrites the texts of the tokens, which are joined after all steps.
/// Immutable, so threads may share one.
class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;

  /// Throws Error{input} if the texts together exceed the limit.
  virtual void apply(std::vector<std::string>& texts, const GrowthLimit& limit) const = 0;
};

using Decoders = std::vector<std::unique_ptr<Decoder>>;

/// Reads the "decoder" of tokenizer.json, with sequences flattened. Throws Error{input}.
Decoders read_decoders(const JsonField& field);

/// GPT-2's decoder: replaces characters by the bytes they represent.
std::unique_ptr<Decoder> make_byte_level_decoder();

}  // namespace dstrain::tokenizer
