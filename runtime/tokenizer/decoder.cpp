#include "runtime/tokenizer/decoder.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/utf8.h"
#include "runtime/tokenizer/byte_level.h"
#include "runtime/tokenizer/byte_tokens.h"
#include "runtime/tokenizer/pattern.h"

namespace dstrain::tokenizer {
namespace {

std::string all_of(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

class ByteLevelDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& texts, const GrowthLimit& /*limit*/) const override {
    join(texts, bytes_of(texts));
  }
  /// An incomplete character is the end.
  bool apply_settled(std::vector<std::string>& texts, const GrowthLimit& /*limit*/) const override {
    const std::string bytes = bytes_of(texts);
    const std::size_t open = incomplete_size(bytes);
    join(texts, std::string_view(bytes).substr(0, bytes.size() - open));
    return open > 0;
  }
  [[nodiscard]] bool is_incremental(bool joined) const override { return !joined; }
  [[nodiscard]] bool joins() const override { return true; }

 private:
  static std::string bytes_of(const std::vector<std::string>& texts) {
    std::string bytes;
    for (const std::string& text : texts) bytes += bytes_of_byte_level(text).value_or(text);
    return bytes;
  }
  static void join(std::vector<std::string>& texts, std::string_view bytes) {
    std::string storage;
    texts.assign(1, std::string(valid_utf8(bytes, storage)));
  }
  [[nodiscard]] std::optional<std::size_t> bytes_of(std::string_view token) const override {
    const std::optional<std::string> bytes = bytes_of_byte_level(token);
    return bytes ? bytes->size() : token.size();
  }
};

/// Decodes tokens <0xE2> to bytes, or a run of them to one U+FFFD each if it is not valid UTF-8.
class ByteFallbackDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& texts, const GrowthLimit& /*limit*/) const override {
    std::vector<std::string> result;
    std::string bytes;
    const auto flush = [&] {
      std::string storage;
      if (bytes.empty()) return;
      if (valid_utf8(bytes, storage).data() == bytes.data()) {
        result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), "\xEF\xBF\xBD");
      }
      bytes.clear();
    };
    for (std::string& text : texts) {
      if (const auto byte = byte_of_token(text)) {
        bytes.push_back(static_cast<char>(*byte));
      } else {
        flush();
        result.push_back(std::move(text));
      }
    }
    flush();
    texts = std::move(result);
  }
  [[nodiscard]] bool is_incremental(bool joined) const override { return !joined; }
  /// The end is a run of bytes: one more that fits nowhere would change all of it.
  bool apply_settled(std::vector<std::string>& texts, const GrowthLimit& limit) const override {
    const std::size_t size = texts.size();
    while (!texts.empty() && byte_of_token(texts.back())) texts.pop_back();
    const bool is_open = texts.size() < size;
    apply(texts, limit);
    return is_open;
  }
  [[nodiscard]] std::optional<std::size_t> bytes_of(std::string_view token) const override {
    return byte_of_token(token) ? std::optional<std::size_t>(1) : std::nullopt;
  }
};

class Fuse final : public Decoder {
 public:
  void apply(std::vector<std::string>& texts, const GrowthLimit& /*limit*/) const override {
    texts.assign(1, all_of(texts));
  }
  [[nodiscard]] bool is_incremental(bool /*joined*/) const override { return true; }
  [[nodiscard]] bool joins() const override { return true; }
};

/// Removes up to `start` and `stop` copies of a character from the ends of each text.
class StripDecoder final : public Decoder {
 public:
  StripDecoder(char32_t content, std::int32_t start, std::int32_t stop)
      : start_(start), stop_(stop) {
    append_utf8(content_, content);
  }

  void apply(std::vector<std::string>& texts, const GrowthLimit& /*limit*/) const override {
    for (std::string& text : texts) {
      std::string_view rest = text;
      for (std::int32_t i = 0; i < start_ && rest.starts_with(content_); ++i) {
        rest.remove_prefix(content_.size());
      }
      for (std::int32_t i = 0; i < stop_ && rest.ends_with(content_); ++i) {
        rest.remove_suffix(content_.size());
      }
      if (rest.size() < text.size()) text = std::string(rest);
    }
  }
  /// What it removes from the end of the one text is missing there, and comes back when more
  /// follows: the text only grows.
  [[nodiscard]] bool is_incremental(bool /*joined*/) const override { return true; }

 private:
  std::string content_;
  std::int32_t start_;
  std::int32_t stop_;
};

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(std::unique_ptr<Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(std::vector<std::string>& texts, const GrowthLimit& limit) const override {
    MatchMemory memory;
    std::size_t done = 0;
    for (std::string& text : texts) {
      std::string result;
      std::size_t end = 0;
      for_each_match(*pattern_, text, memory, [&](Span match) {
        result.append(text, end, match.begin - end).append(content_);
        limit.check(done + result.size(), "decoder");
        end = match.end;
      });
      text = result.append(text, end);
      done += text.size();
    }
  }
  /// A match may reach across tokens that have been joined.
  [[nodiscard]] bool is_incremental(bool joined) const override { return !joined; }

 private:
  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

/// Replaces word-start signs by spaces, or by nothing in the first token.
class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(char32_t sign, bool prepended) : prepended_(prepended) {
    append_utf8(sign_, sign);
  }

  void apply(std::vector<std::string>& texts, const GrowthLimit& /*limit*/) const override {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string_view space = i == 0 && prepended_ ? "" : " ";
      std::string result;
      std::size_t end = 0;
      for (std::size_t at = 0; (at = texts[i].find(sign_, end)) != std::string::npos;) {
        result.append(texts[i], end, at - end).append(space);
        end = at + sign_.size();
      }
      texts[i] = result.append(texts[i], end);
    }
  }
  /// Of joined texts it would remove the spaces of the first one, which is all.
  [[nodiscard]] bool is_incremental(bool joined) const override { return !joined; }

 private:
  std::string sign_;
  bool prepended_;
};

std::unique_ptr<Decoder> read_metaspace_decoder(const JsonField& field) {
  const bool prepended = field.flag_or("add_prefix_space", true) &&
                         field.text_or("prepend_scheme", "always") != "never";
  return std::make_unique<MetaspaceDecoder>(field.member("replacement").character(), prepended);
}

std::unique_ptr<Decoder> read_decoder(const std::string& type, const JsonField& field) {
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "ByteFallback") return std::make_unique<ByteFallbackDecoder>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Metaspace") return read_metaspace_decoder(field);
  if (type == "Strip") {
    return std::make_unique<StripDecoder>(field.member("content").character(),
                                          field.member("start").number(),
                                          field.member("stop").number());
  }
  if (type == "Replace") {
    return std::make_unique<ReplaceDecoder>(read_pattern(field.member("pattern")),
                                            field.member("content").text());
  }
  field.refuse(fmt::format("has the type '{}', which is not supported", type));
}

void read_into(const JsonField& field, Decoders& decoders) {
  const std::string type = field.member("type").text();
  if (type == "Sequence") {
    field.member("decoders").for_each([&](const JsonField& each) { read_into(each, decoders); });
  } else {
    decoders.push_back(read_decoder(type, field));
  }
}

}  // namespace

Decoders read_decoders(const JsonField& field) {
  Decoders decoders;
  read_into(field, decoders);
  return decoders;
}

bool are_incremental(const Decoders& decoders) {
  bool joined = false;
  for (const auto& decoder : decoders) {
    if (!decoder->is_incremental(joined)) return false;
    joined = joined || decoder->joins();
  }
  return true;
}

std::unique_ptr<Decoder> make_byte_level_decoder() {
  return std::make_unique<ByteLevelDecoder>();
}

}  // namespace dstrain::tokenizer
