#include "runtime/tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/unistr.h>

#include "runtime/base/base64.h"
#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/tokenizer/grapheme.h"
#include "runtime/tokenizer/precompiled.h"
#include "runtime/tokenizer/unicode.h"

namespace dstrain::tokenizer {
namespace {

constexpr const char* step_name = "normalizer";

bool is_ascii(std::string_view text) {
  return std::ranges::none_of(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0x80U) != 0; });
}

/// NFC, NFD, NFKC, NFKD.
class UnicodeForm final : public Normalizer {
 public:
  explicit UnicodeForm(const icu::Normalizer2& form) : form_(form) {}

  void apply(Passage& passage, MatchMemory& /*memory*/) const override {
    if (is_ascii(passage.text)) return;
    std::string result;
    result.reserve(passage.text.size());
    icu::StringByteSink<std::string> sink(&result);
    UErrorCode error = U_ZERO_ERROR;
    form_.normalizeUTF8(0, passage.text, sink, nullptr, error);
    if (U_FAILURE(error) != 0) fail(ErrorCode::internal, "ICU: {}", u_errorName(error));
    passage.limit.check(result.size(), step_name);
    passage.text = std::move(result);
  }

  [[nodiscard]] bool allows_cut(Border& border) const override {
    // An inert character never changes and does not interact with its neighbours.
    if (form_.isInert(static_cast<UChar32>(border.right)) == 0) return false;
    if (border.left && !stays(*border.left)) border.left.reset();
    return true;
  }

 private:
  /// Whether it is neither composed with the character before it nor decomposed.
  [[nodiscard]] bool stays(char32_t code) const {
    const auto character = static_cast<UChar32>(code);
    UErrorCode error = U_ZERO_ERROR;
    return form_.hasBoundaryBefore(character) != 0 &&
           form_.isNormalized(icu::UnicodeString(character), error) != 0 && U_SUCCESS(error) != 0;
  }

  const icu::Normalizer2& form_;  ///< owned by ICU; lives as long as the process
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}

  void apply(Passage& passage, MatchMemory& /*memory*/) const override {
    if (passage.text.empty() || passage.follows) return;
    passage.limit.check(text_.size() + passage.text.size(), step_name);
    passage.text.insert(0, text_);
  }

  /// The text is prepended to the first part, so that part must not be empty.
  [[nodiscard]] bool allows_cut(Border& border) const override { return border.left.has_value(); }

 private:
  std::string text_;
};

class Replace final : public Normalizer {
 public:
  Replace(std::unique_ptr<Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(Passage& passage, MatchMemory& memory) const override {
    const std::string_view text = passage.text;
    std::string result;
    std::size_t end = 0;
    for_each_match(*pattern_, text, memory, [&](Span match) {
      if (result.empty() && end == 0) result.reserve(text.size() + text.size() / 4);
      result.append(text.substr(end, match.begin - end)).append(content_);
      passage.limit.check(result.size(), step_name);
      if (match.begin == 0) passage.begins_input &= keeps_begin(match.of(text));
      end = match.end;
    });
    if (end == 0 && result.empty()) return;
    result += text.substr(end);
    passage.text = std::move(result);
  }

  [[nodiscard]] bool allows_cut(Border& border) const override {
    using enum MatchBorder::Chance;
    if (!border.left) return false;
    const auto matches = pattern_->border(*border.left, border.right);
    if (!matches || matches->spanned) return false;
    if (matches->begins != never) {
      if (content_.empty()) return false;
      const char32_t begin = first_character(content_).code;
      if (matches->begins != certain && begin != border.right) return false;
      border.right = begin;
    }
    if (matches->ends != never) {
      const auto end =
          content_.empty() ? std::nullopt : std::optional(last_character(content_).code);
      if (end != border.left) border.left = matches->ends == certain ? end : std::nullopt;
    }
    return true;
  }

 private:
  /// The library counts the replacement of a match as part of the match's last character.
  [[nodiscard]] bool keeps_begin(std::string_view match) const {
    return match.empty() || (!content_.empty() && first_character(match).size == match.size());
  }

  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

class Charsmap final : public Normalizer {
 public:
  explicit Charsmap(Precompiled table) : table_(std::move(table)) {}

  void apply(Passage& passage, MatchMemory& /*memory*/) const override {
    std::string result;
    result.reserve(passage.text.size());
    table_.append_normalized(passage.text, result,
                             [&] { passage.limit.check(result.size(), step_name); });
    passage.text = std::move(result);
  }

  /// Only if no entry of the table begins with the first character of the second part.
  [[nodiscard]] bool allows_cut(Border& border) const override {
    if (!border.left || !always_parts_graphemes(*border.left, border.right)) return false;
    border.left.reset();
    return !table_.begins_entry(border.right);
  }

 private:
  Precompiled table_;
};

/// Rewrites each character separately.
class CharacterWise final : public Normalizer {
 public:
  using Rewrite = void (*)(char32_t code, std::string& result);
  explicit CharacterWise(Rewrite rewrite) : rewrite_(rewrite) {}

  void apply(Passage& passage, MatchMemory& /*memory*/) const override {
    std::string result;
    result.reserve(passage.text.size());
    for (std::string_view rest = passage.text; !rest.empty();) {
      const Character character = first_character(rest);
      rewrite_(character.code, result);
      if (result.empty()) passage.begins_input = false;
      rest.remove_prefix(character.size);
    }
    passage.limit.check(result.size(), step_name);
    passage.text = std::move(result);
  }

  [[nodiscard]] bool allows_cut(Border& border) const override {
    std::string rewritten;
    rewrite_(border.right, rewritten);
    if (rewritten.empty()) return false;
    border.right = first_character(rewritten).code;
    if (!border.left) return true;
    rewritten.clear();
    rewrite_(*border.left, rewritten);
    border.left.reset();
    if (!rewritten.empty()) border.left = last_character(rewritten).code;
    return true;
  }

 private:
  Rewrite rewrite_;
};

void lowercase(char32_t code, std::string& result) {
  append_lowercase(result, code);
}

void strip_accent(char32_t code, std::string& result) {
  if (!is_mark(code)) append_utf8(result, code);
}

/// SentencePiece's "nmt" rules (src/builder.cc): drops control characters and turns other blanks
/// into spaces.
void nmt(char32_t code, std::string& result) {
  const bool dropped = (code >= 1 && code <= 8) || code == 0xB || (code >= 0xE && code <= 0x1F) ||
                       code == 0x7F || code == 0x8F || code == 0x9F;
  if (dropped) return;
  constexpr std::u32string_view blanks = U"\t\n\f\r\u1680\u2028\u2029\u2581\uFEFF\uFFFD";
  const bool blank = (code >= 0x200B && code <= 0x200F) || blanks.find(code) != blanks.npos;
  append_utf8(result, blank ? U' ' : code);
}

/// Removes white space at the ends.
class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void apply(Passage& passage, MatchMemory& /*memory*/) const override {
    std::string_view rest = passage.text;
    while (left_ && !rest.empty() && is_whitespace(first_character(rest).code)) {
      rest.remove_prefix(first_character(rest).size);
    }
    if (rest.size() < passage.text.size()) passage.begins_input = false;
    while (right_ && !rest.empty() && is_whitespace(last_character(rest).code)) {
      rest.remove_suffix(last_character(rest).size);
    }
    if (rest.size() < passage.text.size()) passage.text = std::string(rest);
  }

  [[nodiscard]] bool allows_cut(Border& border) const override {
    return border.left && !is_whitespace(*border.left) && !(left_ && is_whitespace(border.right));
  }

 private:
  bool left_;
  bool right_;
};

const icu::Normalizer2& icu_form(std::string_view name) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* const form = name == "NFC"    ? icu::Normalizer2::getNFCInstance(error)
                                       : name == "NFD"  ? icu::Normalizer2::getNFDInstance(error)
                                       : name == "NFKC" ? icu::Normalizer2::getNFKCInstance(error)
                                                        : icu::Normalizer2::getNFKDInstance(error);
  if (U_FAILURE(error) != 0) fail(ErrorCode::internal, "ICU: {}", u_errorName(error));
  return *form;
}

Precompiled read_charsmap(const JsonField& field) {
  const auto charsmap = decode_base64(field.text());
  if (!charsmap) field.refuse("is not base64");
  return {*charsmap, field.place()};
}

std::unique_ptr<Normalizer> read_one(const std::string& type, const JsonField& field) {
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    return std::make_unique<UnicodeForm>(icu_form(type));
  }
  if (type == "Prepend") return std::make_unique<Prepend>(field.member("prepend").text());
  if (type == "Replace") {
    return std::make_unique<Replace>(read_pattern(field.member("pattern")),
                                     field.member("content").text());
  }
  if (type == "Precompiled") {
    return std::make_unique<Charsmap>(read_charsmap(field.member("precompiled_charsmap")));
  }
  if (type == "Strip") {
    return std::make_unique<Strip>(field.member("strip_left").flag(),
                                   field.member("strip_right").flag());
  }
  if (type == "Lowercase") return std::make_unique<CharacterWise>(lowercase);
  if (type == "StripAccents") return std::make_unique<CharacterWise>(strip_accent);
  if (type == "Nmt") return std::make_unique<CharacterWise>(nmt);
  field.refuse(fmt::format("has the type '{}', which is not supported", type));
}

void read_into(const JsonField& field, Normalizers& normalizers) {
  const std::string type = field.member("type").text();
  if (type == "Sequence") {
    field.member("normalizers").for_each([&](const JsonField& each) {
      read_into(each, normalizers);
    });
  } else {
    normalizers.push_back(read_one(type, field));
  }
}

}  // namespace

Normalizers read_normalizers(const JsonField& field) {
  Normalizers normalizers;
  read_into(field, normalizers);
  return normalizers;
}

}  // namespace dstrain::tokenizer
