#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/tokenizer/added_tokens.h"
#include "runtime/tokenizer/codec.h"
#include "runtime/tokenizer/decoder.h"
#include "runtime/tokenizer/growth_limit.h"
#include "runtime/tokenizer/model.h"
#include "runtime/tokenizer/normalizer.h"
#include "runtime/tokenizer/post_processor.h"
#include "runtime/tokenizer/pre_tokenizer.h"
#include "runtime/tokenizer/text_map.h"
#include "runtime/tokenizer/vocabulary.h"
#include "runtime/tokenizer/word_cache.h"

namespace dstrain::tokenizer {

/// The parts of a pipeline.
struct PipelineParts {
  std::unique_ptr<const Vocabulary> vocabulary;  ///< of the model, without added tokens
  std::unique_ptr<const Model> model;
  std::vector<AddedToken> added_tokens;
  Normalizers normalizers;
  PreTokenizers pre_tokenizers;
  PostProcessor post_processor;
  Decoders decoders;
};

/// The steps of Hugging Face's `tokenizers`: extract added tokens, normalize the rest and cut it
/// into words, which the model cuts into tokens. Encoding a text uses about ten times its size in
/// memory.
class Pipeline final : public Codec {
 public:
  /// Throws Error{input}, which begins with `place`, if added tokens contradict each other.
  /// Encoding throws it if the steps make a text too large (GrowthLimit).
  Pipeline(PipelineParts parts, std::string place);

  void encode(std::string_view text,
              SpecialTokens special,
              std::vector<std::int32_t>& ids) const override;
  void encode_following(std::string_view text, std::vector<std::int32_t>& ids) const override;
  [[nodiscard]] bool allows_cut(char32_t left, char32_t right) const override;
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids,
                                   SpecialText special) const override;
  [[nodiscard]] DecodedPrefix decode_prefix(std::span<const std::int32_t> ids,
                                            SpecialText special) const override;
  [[nodiscard]] std::int64_t text_bytes(std::int32_t id) const override;
  [[nodiscard]] std::int64_t vocabulary_size() const override { return size_; }
  [[nodiscard]] std::optional<std::string> token(std::int32_t id) const override;
  [[nodiscard]] std::optional<std::int32_t> id(std::string_view token) const override;

 private:
  /// Working memory of a thread that encodes.
  struct Memory {
    explicit Memory(std::size_t cached_words) : cache(cached_words) {}

    std::vector<AddedPart> parts;
    std::vector<AddedPart> normalized_parts;
    Passage passage;
    Words words;
    CutMemory cut;
    ModelMemory model;
    WordCache cache;
  };
  class Lease;

  void add_token(const AddedToken& token);
  /// Decodes the texts of tokens.
  [[nodiscard]] std::string decoded(std::vector<std::string> texts) const;
  [[nodiscard]] std::string normalized(const std::string& text) const;
  enum class Piece { first, following };
  void encode_piece(std::string_view text, Piece piece, std::vector<std::int32_t>& ids) const;
  /// Encodes the text between added tokens. @p begin its position in the piece
  void encode_text(std::string_view text,
                   std::size_t begin,
                   Piece piece,
                   Memory& memory,
                   std::vector<std::int32_t>& ids) const;
  void encode_normalized(std::string_view text,
                         bool begins_input,
                         Memory& memory,
                         std::vector<std::int32_t>& ids) const;

  /// The texts of tokens as the decoder receives them.
  [[nodiscard]] std::vector<std::string> texts_of(std::span<const std::int32_t> ids,
                                                  SpecialText special) const;
  [[nodiscard]] GrowthLimit limit_of(const std::vector<std::string>& texts) const;
  [[nodiscard]] std::string joined(const std::vector<std::string>& texts) const;

  PipelineParts parts_;
  std::string place_;
  AddedTokenFinder raw_tokens_;         ///< searched before normalization
  AddedTokenFinder normalized_tokens_;  ///< searched after it
  TextMap<std::int32_t> added_id_of_;
  std::unordered_map<std::int32_t, std::string> added_text_of_;  ///< as the decoder receives it
  TextMap<bool> special_;                                        ///< the contents of special tokens
  std::int64_t size_ = 0;
  bool decodes_incrementally_ = false;
  /// Not used by any thread.
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Memory>> idle_;
};

}  // namespace dstrain::tokenizer
