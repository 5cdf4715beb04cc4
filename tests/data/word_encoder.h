#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>

#include "runtime/data/chat_template.h"
#include "runtime/data/text_encoder.h"

namespace dstrain::test {

/// A tokenizer for tests that behaves like those of models: names of special tokens are one token
/// each, and all else is cut into runs of letters with the one character before them, so that a
/// token may span two pieces of text that were put together.
class WordEncoder : public data::TextEncoder {
 public:
  struct Options {
    std::string identity = "words";
    std::vector<std::string> special{"<|im_start|>", "<|im_end|>", "<s>", "</s>"};
    std::string begins_with{};
    std::string ends_with = "</s>";
    std::unique_ptr<data::ChatTemplate> chat{};
  };

  explicit WordEncoder(Options options) : options_(std::move(options)) {}
  WordEncoder() : WordEncoder(Options{}) {}

  [[nodiscard]] std::string identity() const override { return options_.identity; }
  [[nodiscard]] std::int64_t vocabulary() const override { return first_word + words; }
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    while (!text.empty()) {
      const std::string_view token = next(text);
      ids.push_back(id(token));
      text.remove_prefix(token.size());
    }
    return ids;
  }
  /// A space begins a word, and is in no special token.
  [[nodiscard]] std::size_t safe_cut(std::string_view text) const override {
    const std::size_t space = text.rfind(' ');
    return space == std::string_view::npos ? 0 : space;
  }
  [[nodiscard]] std::vector<std::int32_t> encode_following(std::string_view text) const override {
    return encode(text);
  }
  [[nodiscard]] std::string decode(std::span<const std::int32_t> /*ids*/) const override {
    throw std::logic_error("a word's number does not tell the word");
  }
  [[nodiscard]] std::int64_t text_bytes(std::int32_t /*id*/) const override {
    throw std::logic_error("a word's number does not tell the word");
  }
  [[nodiscard]] std::vector<std::int32_t> beginning() const override {
    return encode(options_.begins_with);
  }
  [[nodiscard]] std::optional<std::int32_t> end_of_text() const override {
    if (options_.ends_with.empty()) return std::nullopt;
    return id(options_.ends_with);
  }
  [[nodiscard]] std::optional<data::ByteRange> first_special(std::string_view text) const override {
    for (std::size_t at = 0; at < text.size(); at += next(text.substr(at)).size()) {
      const std::string token(next(text.substr(at)));
      if (std::ranges::find(options_.special, token) != options_.special.end()) {
        return data::ByteRange{at, at + token.size()};
      }
    }
    return std::nullopt;
  }
  [[nodiscard]] const data::ChatTemplate* chat_template() const override {
    return options_.chat.get();
  }

  [[nodiscard]] std::int32_t id(std::string_view token) const {
    const auto special = std::ranges::find(options_.special, token);
    if (special != options_.special.end()) {
      return static_cast<std::int32_t>(special - options_.special.begin());
    }
    std::uint32_t hash = 2166136261U;  // FNV-1a
    for (const char c : token) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    return static_cast<std::int32_t>(first_word + hash % words);
  }

 private:
  static constexpr std::int32_t first_word = 16;
  static constexpr std::int32_t words = 200'000;

  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

  [[nodiscard]] bool starts_special(std::string_view text) const {
    return std::ranges::any_of(options_.special,
                               [&](const std::string& name) { return text.starts_with(name); });
  }
  [[nodiscard]] std::string_view next(std::string_view text) const {
    for (const std::string& name : options_.special) {
      if (text.starts_with(name)) return text.substr(0, name.size());
    }
    std::size_t size = 1;
    while (size < text.size() && is_letter(text[size]) && !starts_special(text.substr(size))) {
      ++size;
    }
    return text.substr(0, size);
  }

  Options options_;
};

}  // namespace dstrain::test
