#include "runtime/data/text_encoder.h"

#include <algorithm>
#include <utility>

#include "runtime/base/utf8.h"
#include "runtime/data/hugging_face_encoder.h"
#include "runtime/data/tokenizer.h"

namespace dstrain::data {
namespace {

class ByteEncoder : public TextEncoder {
 public:
  explicit ByteEncoder(std::string no_chat_template)
      : no_chat_template_(std::move(no_chat_template)) {}

  [[nodiscard]] std::string identity() const override { return "byte"; }
  [[nodiscard]] std::int64_t vocabulary() const override { return byte_vocabulary; }
  [[nodiscard]] bool is_bytes() const override { return true; }
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const override {
    return encode_bytes(text);
  }
  /// Cuts before the last character, which may be incomplete.
  [[nodiscard]] std::size_t safe_cut(std::string_view text) const override {
    const auto begins_character = [](char byte) {
      return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
    };
    const auto last = std::find_if(text.rbegin(), text.rend(), begins_character);
    return last == text.rend() ? text.size() : static_cast<std::size_t>(text.rend() - last) - 1;
  }
  [[nodiscard]] std::vector<std::int32_t> encode_following(std::string_view text) const override {
    return encode_bytes(text);
  }
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const override {
    return decode_bytes(ids);
  }
  [[nodiscard]] tokenizer::DecodedPrefix decode_prefix(
      std::span<const std::int32_t> ids) const override {
    std::string text = decode_bytes(ids);
    const std::size_t settled = text.size() - incomplete_size(text);
    return {.text = std::move(text), .settled = settled};
  }
  [[nodiscard]] std::int64_t text_bytes(std::int32_t id) const override {
    return id >= 0 && id < byte_vocabulary ? 1 : 0;
  }
  [[nodiscard]] std::string no_chat_template() const override { return no_chat_template_; }

 private:
  std::string no_chat_template_;
};

}  // namespace

std::string_view first_piece(const TextEncoder& encoder, std::string_view text) {
  for (std::size_t window = std::size_t{1} << 20; window < text.size(); window *= 2) {
    const std::size_t cut = encoder.safe_cut(text.substr(0, window));
    if (cut > 0) return text.substr(0, cut);
  }
  return text;
}

std::unique_ptr<TextEncoder> make_byte_encoder(std::string no_chat_template) {
  return std::make_unique<ByteEncoder>(std::move(no_chat_template));
}

std::unique_ptr<TextEncoder> make_encoder(const std::string& tokenizer,
                                          const ChatOptions& options) {
  if (tokenizer == "byte") {
    return make_byte_encoder(
        "the byte tokenizer has no chat template; add --tokenizer DIR with a tokenizer that has "
        "one, or give prompt and completion instead");
  }
  return std::make_unique<HuggingFaceEncoder>(tokenizer, options);
}

}  // namespace dstrain::data
