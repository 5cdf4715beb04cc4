#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/tokenizer/growth_limit.h"
#include "runtime/tokenizer/json_field.h"

namespace dstrain::tokenizer {

/// A step on the way from tokens to text: the texts of the tokens, joined when all steps are done.
/// Immutable, so threads may share one.
class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;

  /// Throws Error{input} where all texts together grow beyond the limit.
  virtual void apply(std::vector<std::string>& texts, const GrowthLimit& limit) const = 0;
};

using Decoders = std::vector<std::unique_ptr<Decoder>>;

/// The "decoder" of tokenizer.json, sequences flattened. Throws Error{input}.
Decoders read_decoders(const JsonField& field);

/// GPT-2's: characters that stand for bytes become these bytes.
std::unique_ptr<Decoder> make_byte_level_decoder();

}  // namespace dstrain::tokenizer
