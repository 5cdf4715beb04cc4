#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::tokenizer {

/// Whether to add the special tokens that begin and end a model's texts.
enum class SpecialTokens { none, added };
/// Whether special tokens appear in decoded text.
enum class SpecialText { kept, skipped };

/// The decoded text of tokens that others may follow: these change nothing of its first `settled`
/// bytes.
struct DecodedPrefix {
  std::string text;
  std::size_t settled = 0;
};

/// The implementation of Tokenizer for one kind of files. Immutable, so threads may share one.
class Codec {
 public:
  Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;
  virtual ~Codec() = default;

  /// Appends the tokens of a text, which must be valid UTF-8.
  virtual void encode(std::string_view text,
                      SpecialTokens special,
                      std::vector<std::int32_t>& ids) const = 0;
  /// Appends the tokens of a piece that follows a cut.
  virtual void encode_following(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  /// Whether every text may be cut between these two adjacent characters: the tokens of the pieces
  /// are those of the whole. May return false although it is possible.
  [[nodiscard]] virtual bool allows_cut(char32_t left, char32_t right) const = 0;
  [[nodiscard]] virtual std::string decode(std::span<const std::int32_t> ids,
                                           SpecialText special) const = 0;
  /// Decodes tokens that others may follow. If all of a text that is not empty is settled, what
  /// follows is decoded the same whatever comes before these tokens.
  [[nodiscard]] virtual DecodedPrefix decode_prefix(std::span<const std::int32_t> ids,
                                                    SpecialText special) const = 0;
  /// Returns how many bytes of UTF-8 text a token stands for inside a text; see Tokenizer.
  [[nodiscard]] virtual std::int64_t text_bytes(std::int32_t id) const = 0;
  [[nodiscard]] virtual std::int64_t vocabulary_size() const = 0;
  [[nodiscard]] virtual std::optional<std::string> token(std::int32_t id) const = 0;
  [[nodiscard]] virtual std::optional<std::int32_t> id(std::string_view token) const = 0;
};

}  // namespace dstrain::tokenizer
