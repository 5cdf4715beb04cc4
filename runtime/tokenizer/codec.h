#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::tokenizer {

/// Whether the special tokens that a model's texts begin and end with are added.
enum class SpecialTokens { none, added };
/// Whether special tokens appear in decoded text.
enum class SpecialText { kept, skipped };

/// What stands behind a Tokenizer: one kind of files. Immutable, so threads may share one.
class Codec {
 public:
  Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;
  virtual ~Codec() = default;

  /// Appends the tokens of valid UTF-8.
  virtual void encode(std::string_view text,
                      SpecialTokens special,
                      std::vector<std::int32_t>& ids) const = 0;
  /// Appends those of a piece that follows a cut.
  virtual void encode_following(std::string_view text, std::vector<std::int32_t>& ids) const = 0;
  /// Whether every text in which these two characters stand beside each other may be cut between
  /// them: the tokens of both pieces are those of the whole. May say no.
  [[nodiscard]] virtual bool allows_cut(char32_t left, char32_t right) const = 0;
  [[nodiscard]] virtual std::string decode(std::span<const std::int32_t> ids,
                                           SpecialText special) const = 0;
  [[nodiscard]] virtual std::int64_t vocabulary_size() const = 0;
  [[nodiscard]] virtual std::optional<std::string> token(std::int32_t id) const = 0;
  [[nodiscard]] virtual std::optional<std::int32_t> id(std::string_view token) const = 0;
};

}  // namespace dstrain::tokenizer
