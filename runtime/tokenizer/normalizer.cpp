#include "runtime/tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/tokenizer/base64.h"
#include "runtime/tokenizer/precompiled.h"
#include "runtime/tokenizer/unicode.h"

namespace dstrain::tokenizer {
namespace {

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
    passage.text = std::move(result);
  }

 private:
  const icu::Normalizer2& form_;  ///< ICU's own, which lives as long as the process
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}

  void apply(Passage& passage, MatchMemory& /*memory*/) const override {
    if (!passage.text.empty()) passage.text.insert(0, text_);
  }

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
      if (match.begin == 0) passage.begins_input &= keeps_begin(match.of(text));
      end = match.end;
    });
    if (end == 0 && result.empty()) return;
    result += text.substr(end);
    passage.text = std::move(result);
  }

 private:
  /// The library counts what replaces a match as part of its last character.
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
    table_.append_normalized(passage.text, result);
    passage.text = std::move(result);
  }

 private:
  Precompiled table_;
};

/// Rewrites each character by itself.
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
    passage.text = std::move(result);
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

/// SentencePiece's "nmt" rules (src/builder.cc): drops control characters, other blanks to spaces.
void nmt(char32_t code, std::string& result) {
  const bool dropped = (code >= 1 && code <= 8) || code == 0xB || (code >= 0xE && code <= 0x1F) ||
                       code == 0x7F || code == 0x8F || code == 0x9F;
  if (dropped) return;
  constexpr std::u32string_view blanks = U"\t\n\f\r\u1680\u2028\u2029\u2581\uFEFF\uFFFD";
  const bool blank = (code >= 0x200B && code <= 0x200F) || blanks.find(code) != blanks.npos;
  append_utf8(result, blank ? U' ' : code);
}

/// Takes white space from the ends.
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
  const std::string& type = field.member("type").text();
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
