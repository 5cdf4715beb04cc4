#include "runtime/tokenizer/sentencepiece_codec.h"

#include <utility>
#include <vector>

#include <sentencepiece_processor.h>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/os/file.h"
#include "runtime/tokenizer/byte_tokens.h"

namespace dstrain::tokenizer {
namespace {

constexpr Bytes sentencepiece_bytes_max = 256 * mebibyte;
constexpr std::size_t replacement_size = 3;  // U+FFFD in UTF-8

using sentencepiece::SentencePieceProcessor;

class SentencePieceCodec final : public Codec {
 public:
  SentencePieceCodec(std::unique_ptr<const SentencePieceProcessor> processor, bool bos, bool eos)
      : processor_(std::move(processor)), add_bos_(bos), add_eos_(eos) {}

  void encode(std::string_view text,
              SpecialTokens special,
              std::vector<std::int32_t>& ids) const override {
    std::vector<int> found;
    const auto status = processor_->Encode({text.data(), text.size()}, &found);
    if (!status.ok()) fail(ErrorCode::input, "SentencePiece: {}", status.ToString());
    const bool added = special == SpecialTokens::added;
    if (added && add_bos_) ids.push_back(processor_->bos_id());
    ids.insert(ids.end(), found.begin(), found.end());
    if (added && add_eos_) ids.push_back(processor_->eos_id());
  }

  /// The unigram model adds scores of the whole text as floats. Rounding, and so the choice of
  /// tokens, depends on everything before.
  [[nodiscard]] bool allows_cut(char32_t /*left*/, char32_t /*right*/) const override {
    return false;
  }
  void encode_following(std::string_view /*text*/,
                        std::vector<std::int32_t>& /*ids*/) const override {
    fail(ErrorCode::internal, "SentencePiece encodes texts as a whole");
  }

  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids,
                                   SpecialText /*special*/) const override {
    std::vector<int> known;
    for (const std::int32_t each : ids) {
      if (each >= 0 && each < processor_->GetPieceSize()) known.push_back(each);
    }
    std::string text;
    const auto status = processor_->Decode(known, &text);
    if (!status.ok()) fail(ErrorCode::input, "SentencePiece: {}", status.ToString());
    return text;
  }

  /// Bytes at the end that are no whole character yet are one U+FFFD each.
  [[nodiscard]] DecodedPrefix decode_prefix(std::span<const std::int32_t> ids,
                                            SpecialText special) const override {
    std::string bytes;
    for (auto each = ids.rbegin(); each != ids.rend() && bytes.size() < 4; ++each) {
      if (*each < 0 || *each >= processor_->GetPieceSize()) continue;
      if (!processor_->IsByte(*each)) break;
      const auto byte = byte_of_token(processor_->IdToPiece(*each));
      bytes.insert(bytes.begin(), static_cast<char>(byte.value_or(0)));
    }
    DecodedPrefix decoded{.text = decode(ids, special)};
    decoded.settled = decoded.text.size() - incomplete_size(bytes) * replacement_size;
    return decoded;
  }

  [[nodiscard]] std::int64_t text_bytes(std::int32_t id) const override {
    if (id < 0 || id >= processor_->GetPieceSize()) return 0;
    if (processor_->IsControl(id) || processor_->IsUnknown(id)) return 0;
    if (processor_->IsByte(id)) return 1;
    constexpr std::string_view space = "\xE2\x96\x81";  // U+2581
    const std::string_view piece = processor_->IdToPiece(id);
    std::size_t bytes = piece.size();
    for (std::size_t at = 0; (at = piece.find(space, at)) != piece.npos; at += space.size()) {
      bytes -= space.size() - 1;
    }
    return static_cast<std::int64_t>(bytes);
  }
  [[nodiscard]] std::int64_t vocabulary_size() const override { return processor_->GetPieceSize(); }
  [[nodiscard]] std::optional<std::string> token(std::int32_t id) const override {
    if (id < 0 || id >= processor_->GetPieceSize()) return std::nullopt;
    return processor_->IdToPiece(id);
  }
  [[nodiscard]] std::optional<std::int32_t> id(std::string_view token) const override {
    const int found = processor_->PieceToId({token.data(), token.size()});
    // It returns the unknown token for text that it does not know.
    if (processor_->IdToPiece(found) != token) return std::nullopt;
    return found;
  }

 private:
  std::unique_ptr<const SentencePieceProcessor> processor_;
  bool add_bos_;
  bool add_eos_;
};

}  // namespace

LoadedCodec load_sentencepiece(const std::filesystem::path& path, const SpecialNames& names) {
  const std::string file = read_text_file(path, sentencepiece_bytes_max);
  auto processor = std::make_unique<SentencePieceProcessor>();
  const auto status = processor->LoadFromSerializedProto(file);
  if (!status.ok()) {
    fail(ErrorCode::input, "{}: SentencePiece cannot read it: {}", path.string(),
         status.ToString());
  }
  const auto known = [](int id) {
    return id < 0 ? std::nullopt : std::optional<std::int32_t>(id);
  };
  LoadedCodec loaded{{}, known(processor->bos_id()), known(processor->eos_id())};
  loaded.codec = std::make_unique<SentencePieceCodec>(
      std::move(processor), names.add_bos && loaded.bos, names.add_eos && loaded.eos);
  return loaded;
}

}  // namespace dstrain::tokenizer
