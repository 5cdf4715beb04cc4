#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
  /// The same of texts that others may follow, without the end that these may change. Returns
  /// whether there is such an end.
  virtual bool apply_settled(std::vector<std::string>& texts, const GrowthLimit& limit) const {
    apply(texts, limit);
    return false;
  }
  /// Whether apply_settled can tell, and the last texts are rewritten without regard to the first
  /// ones. `joined`: whether a step before has joined the texts, so that they are one.
  [[nodiscard]] virtual bool is_incremental(bool joined) const = 0;
  /// Whether this step joins the texts.
  [[nodiscard]] virtual bool joins() const { return false; }
  /// Returns the number of bytes for which a token stands that may be a part of a character only,
  /// so that apply() cannot decode it alone; nothing: it is a text.
  [[nodiscard]] virtual std::optional<std::size_t> bytes_of(std::string_view /*token*/) const {
    return std::nullopt;
  }
};

using Decoders = std::vector<std::unique_ptr<Decoder>>;

/// Reads the "decoder" of tokenizer.json, with sequences flattened. Throws Error{input}.
Decoders read_decoders(const JsonField& field);

/// Whether the steps can decode the last tokens of a text without the first ones.
bool are_incremental(const Decoders& decoders);

/// GPT-2's decoder: replaces characters by the bytes they represent.
std::unique_ptr<Decoder> make_byte_level_decoder();

}  // namespace dstrain::tokenizer
