#include "runtime/tokenizer/pipeline.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"

namespace dstrain::tokenizer {
namespace {

/// Of 64 bytes each: an L2 cache holds this many frequent words.
constexpr std::size_t cached_words_max = std::size_t{1} << 15;

}  // namespace

/// Borrows a Memory for a scope.
class Pipeline::Lease {
 public:
  explicit Lease(const Pipeline& owner) : owner_(owner) {
    const std::lock_guard lock(owner.mutex_);
    if (owner.idle_.empty()) return;
    memory_ = std::move(owner.idle_.back());
    owner.idle_.pop_back();
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    if (memory_ == nullptr) return;
    const std::lock_guard lock(owner_.mutex_);
    owner_.idle_.push_back(std::move(memory_));
  }

  Memory& memory() {
    if (memory_ == nullptr) {
      const std::size_t tokens = owner_.parts_.vocabulary->count();
      memory_ = std::make_unique<Memory>(std::min(tokens, cached_words_max));
    }
    return *memory_;
  }

 private:
  const Pipeline& owner_;
  std::unique_ptr<Memory> memory_;
};

Pipeline::Pipeline(PipelineParts parts, std::string place)
    : parts_(std::move(parts)), place_(std::move(place)) {
  size_ = parts_.vocabulary->size();
  decodes_incrementally_ = are_incremental(parts_.decoders);
  for (const AddedToken& added : parts_.added_tokens) add_token(added);
  for (const auto* const ids : {&parts_.post_processor.before, &parts_.post_processor.after}) {
    for (const std::int32_t each : *ids) {
      if (!token(each))
        fail(ErrorCode::input, "{}: post_processor: no token has id {}", place_, each);
    }
  }
}

void Pipeline::add_token(const AddedToken& token) {
  if (!added_id_of_.emplace(token.content, token.id).second) {
    fail(ErrorCode::input, "{}: the added token '{}' appears twice", place_,
         printable(token.content));
  }
  const std::string text = token.normalized ? normalized(token.content) : token.content;
  const auto [known, is_new] = added_text_of_.emplace(token.id, text);
  if (!is_new) {
    fail(ErrorCode::input, "{}: the added tokens '{}' and '{}' have the same id {}", place_,
         printable(known->second), printable(text), token.id);
  }
  if (text.empty()) {
    fail(ErrorCode::input, "{}: nothing is left of the added token '{}'", place_,
         printable(token.content));
  }
  AddedTokenFinder& finder = token.normalized ? normalized_tokens_ : raw_tokens_;
  if (!finder.add(text, token)) {
    fail(ErrorCode::input, "{}: two added tokens become '{}'", place_, printable(text));
  }
  if (token.special) special_.emplace(token.content, true);
  size_ = std::max(size_, std::int64_t{token.id} + 1);
}

std::string Pipeline::normalized(const std::string& text) const {
  Passage passage{.text = text, .limit = GrowthLimit::of(text.size(), place_)};
  MatchMemory memory;
  for (const auto& normalizer : parts_.normalizers) normalizer->apply(passage, memory);
  return passage.text;
}

void Pipeline::encode(std::string_view text,
                      SpecialTokens special,
                      std::vector<std::int32_t>& ids) const {
  const PostProcessor& around = parts_.post_processor;
  if (special == SpecialTokens::added) {
    ids.insert(ids.end(), around.before.begin(), around.before.end());
  }
  encode_piece(text, Piece::first, ids);
  if (special == SpecialTokens::added) {
    ids.insert(ids.end(), around.after.begin(), around.after.end());
  }
}

void Pipeline::encode_following(std::string_view text, std::vector<std::int32_t>& ids) const {
  encode_piece(text, Piece::following, ids);
}

bool Pipeline::allows_cut(char32_t left, char32_t right) const {
  Border border{.left = left, .right = right};
  if (!raw_tokens_.allows_cut(border)) return false;
  for (const auto& normalizer : parts_.normalizers) {
    if (!normalizer->allows_cut(border)) return false;
  }
  if (!normalized_tokens_.allows_cut(border)) return false;
  for (const auto& step : parts_.pre_tokenizers.steps) {
    if (border.ends_word) break;
    if (!step->allows_cut(border)) return false;
  }
  return border.ends_word;
}

void Pipeline::encode_piece(std::string_view text,
                            Piece piece,
                            std::vector<std::int32_t>& ids) const {
  Lease lease(*this);
  Memory& memory = lease.memory();
  memory.parts.clear();
  raw_tokens_.split(text, memory.parts);
  for (const AddedPart& part : memory.parts) {
    if (part.id >= 0) {
      ids.push_back(part.id);
    } else {
      encode_text(part.span.of(text), part.span.begin, piece, memory, ids);
    }
  }
}

void Pipeline::encode_text(std::string_view text,
                           std::size_t begin,
                           Piece piece,
                           Memory& memory,
                           std::vector<std::int32_t>& ids) const {
  Passage& passage = memory.passage;
  passage.text = text;
  passage.begins_input = begin == 0 && piece == Piece::first;
  passage.follows = begin == 0 && piece == Piece::following;
  passage.limit = GrowthLimit::of(text.size(), place_);
  for (const auto& normalizer : parts_.normalizers) normalizer->apply(passage, memory.cut.match);
  memory.normalized_parts.clear();
  normalized_tokens_.split(passage.text, memory.normalized_parts);
  for (const AddedPart& part : memory.normalized_parts) {
    if (part.id >= 0) {
      ids.push_back(part.id);
    } else {
      encode_normalized(part.span.of(passage.text), passage.begins_input && part.span.begin == 0,
                        memory, ids);
    }
  }
}

void Pipeline::encode_normalized(std::string_view text,
                                 bool begins_input,
                                 Memory& memory,
                                 std::vector<std::int32_t>& ids) const {
  Words& words = memory.words;
  words.passage.text = text;
  words.passage.begins_input = begins_input;
  words.spans.assign(1, {0, text.size()});
  for (const auto& step : parts_.pre_tokenizers.steps) step->apply(words, memory.cut);
  for (const Span& span : words.spans) {
    const std::string_view word = span.of(words.passage.text);
    if (memory.cache.append(word, ids)) continue;
    const std::size_t before = ids.size();
    parts_.model->encode(word, memory.model, ids);
    memory.cache.keep(word, std::span(ids).subspan(before));
  }
}

std::optional<std::string> Pipeline::token(std::int32_t id) const {
  const auto added = added_text_of_.find(id);
  if (added != added_text_of_.end()) return added->second;
  const std::string* const token = parts_.vocabulary->token(id);
  return token == nullptr ? std::nullopt : std::optional(*token);
}

std::optional<std::int32_t> Pipeline::id(std::string_view token) const {
  const auto added = added_id_of_.find(token);
  return added != added_id_of_.end() ? added->second : parts_.vocabulary->id(token);
}

std::string Pipeline::decode(std::span<const std::int32_t> ids, SpecialText special) const {
  return decoded(texts_of(ids, special));
}

std::string Pipeline::decoded(std::vector<std::string> texts) const {
  const GrowthLimit limit = limit_of(texts);
  for (const auto& decoder : parts_.decoders) decoder->apply(texts, limit);
  return joined(texts);
}

DecodedPrefix Pipeline::decode_prefix(std::span<const std::int32_t> ids,
                                      SpecialText special) const {
  if (!decodes_incrementally_) return {.text = decode(ids, special), .settled = 0};
  std::vector<std::string> settled = texts_of(ids, special);
  const GrowthLimit limit = limit_of(settled);
  bool is_open = false;
  for (const auto& decoder : parts_.decoders) {
    is_open = decoder->apply_settled(settled, limit) || is_open;
  }
  DecodedPrefix decoded{.text = joined(settled)};
  decoded.settled = decoded.text.size();
  if (is_open) decoded.text = decode(ids, special);
  return decoded;
}

std::vector<std::string> Pipeline::texts_of(std::span<const std::int32_t> ids,
                                            SpecialText special) const {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (const std::int32_t each : ids) {
    std::optional<std::string> text = token(each);
    if (!text || (special == SpecialText::skipped && special_.contains(*text))) continue;
    texts.push_back(std::move(*text));
  }
  return texts;
}

GrowthLimit Pipeline::limit_of(const std::vector<std::string>& texts) const {
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  return GrowthLimit::of(bytes, place_);
}

std::string Pipeline::joined(const std::vector<std::string>& texts) const {
  const std::string_view separator = parts_.decoders.empty() ? " " : "";
  std::string all;
  for (std::size_t i = 0; i < texts.size(); ++i)
    all.append(i > 0 ? separator : "").append(texts[i]);
  return all;
}

std::int64_t Pipeline::text_bytes(std::int32_t id) const {
  const std::optional<std::string> text = token(id);
  if (!text || special_.contains(*text)) return 0;
  for (const auto& decoder : parts_.decoders) {
    const std::optional<std::size_t> bytes = decoder->bytes_of(*text);
    if (bytes) return static_cast<std::int64_t>(*bytes);
  }
  if (parts_.decoders.empty()) return std::ssize(*text);
  // Behind another token: the first one of a text may lose its space.
  const std::string before = "a";
  return std::ssize(decoded({before, *text})) - std::ssize(decoded({before}));
}

}  // namespace dstrain::tokenizer
