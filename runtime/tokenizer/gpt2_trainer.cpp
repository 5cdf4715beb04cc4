#include "runtime/tokenizer/gpt2_trainer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/tokenizer/byte_level.h"
#include "runtime/tokenizer/byte_level_files.h"
#include "runtime/tokenizer/merge_learner.h"
#include "runtime/tokenizer/pre_tokenizer.h"
#include "runtime/tokenizer/word_counts.h"
#include "runtime/tokenizer/word_cut.h"

namespace dstrain::tokenizer {
namespace {

constexpr std::int32_t first_merge_id = 257;  ///< after end_of_text and the bytes
constexpr std::int64_t vocabulary_size_max = std::numeric_limits<std::int32_t>::max();
/// Texts are cut into pieces of at most this size if word boundaries allow it: a piece fits into a
/// cache.
constexpr std::size_t piece_bytes = std::size_t{1} << 16;

/// The initial tokens by id: end_of_text, then the bytes in the order of their characters.
std::vector<std::string> first_tokens() {
  std::vector<char32_t> characters;
  for (unsigned byte = 0; byte < 256; ++byte) {
    characters.push_back(byte_level_character(static_cast<std::uint8_t>(byte)));
  }
  std::ranges::sort(characters);
  std::vector<std::string> tokens{std::string(end_of_text)};
  for (const char32_t character : characters) append_utf8(tokens.emplace_back(), character);
  return tokens;
}

std::array<std::int32_t, 256> ids_of_bytes(const std::vector<std::string>& tokens) {
  std::array<std::int32_t, 256> ids{};
  for (std::int32_t id = 1; id < first_merge_id; ++id) {
    const auto byte = bytes_of_byte_level(tokens[static_cast<std::size_t>(id)]);
    ids[static_cast<unsigned char>(byte->front())] = id;
  }
  return ids;
}

std::string_view first_piece(std::string_view text) {
  for (std::size_t bytes = piece_bytes; bytes < text.size(); bytes *= 2) {
    const std::size_t cut = last_word_cut(text.substr(0, bytes));
    if (cut != 0) return text.substr(0, cut);
  }
  return text;
}

/// Counts words. Not thread-safe.
class WordCounter {
 public:
  void add(std::string_view piece, const PreTokenizers& gpt2) {
    const std::string_view text = valid_utf8(piece, storage_);
    words_.passage.text = text;
    words_.spans.assign(1, {0, text.size()});
    for (const auto& step : gpt2.steps) step->apply(words_, memory_);
    for (const Span& span : words_.spans) counts_.add(span.of(words_.passage.text));
  }
  [[nodiscard]] WordCounts& counts() { return counts_; }

 private:
  WordCounts counts_;
  Words words_;
  CutMemory memory_;
  std::string storage_;
};

class Gpt2Trainer final : public BpeTrainer {
 public:
  void add(std::string_view text) override {
    Lease lease(*this);
    while (!text.empty()) {
      const std::string_view piece = first_piece(text);
      if (piece.size() > std::numeric_limits<std::int32_t>::max()) {
        fail(ErrorCode::input, "a text has {} bytes without a white space: too many to learn from",
             piece.size());
      }
      lease.counter().add(piece, gpt2_);
      text.remove_prefix(piece.size());
    }
  }

  [[nodiscard]] std::size_t safe_cut(std::string_view text) const override {
    return last_word_cut(text);
  }

  LearntTokenizer learn(std::int64_t vocabulary_size) override {
    if (vocabulary_size < first_merge_id || vocabulary_size > vocabulary_size_max) {
      fail(ErrorCode::usage,
           "a vocabulary of {} tokens cannot be learnt: it has {}, which are the 256 bytes and {}, "
           "to {}",
           vocabulary_size, first_merge_id, end_of_text, vocabulary_size_max);
    }
    std::vector<std::string> tokens = first_tokens();
    std::vector<Merge> merges;
    MergeLearner learner(all_counts(), ids_of_bytes(tokens), first_merge_id);
    while (static_cast<std::int64_t>(tokens.size()) < vocabulary_size) {
      const auto merge = learner.next();
      if (!merge) break;
      merges.push_back(*merge);
      tokens.push_back(tokens[static_cast<std::size_t>(merge->left)] +
                       tokens[static_cast<std::size_t>(merge->right)]);
    }
    return {.tokenizer_json = byte_level_tokenizer_json(tokens, merges),
            .tokenizer_config_json = byte_level_config_json(),
            .vocabulary_size = static_cast<std::int64_t>(tokens.size())};
  }

 private:
  /// Borrows a counter for a scope.
  class Lease {
   public:
    explicit Lease(Gpt2Trainer& owner) : owner_(owner) {
      const std::lock_guard lock(owner_.mutex_);
      if (owner_.idle_.empty()) {
        counter_ = std::make_unique<WordCounter>();
      } else {
        counter_ = std::move(owner_.idle_.back());
        owner_.idle_.pop_back();
      }
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      const std::lock_guard lock(owner_.mutex_);
      owner_.idle_.push_back(std::move(counter_));
    }
    [[nodiscard]] WordCounter& counter() { return *counter_; }

   private:
    Gpt2Trainer& owner_;
    std::unique_ptr<WordCounter> counter_;
  };

  /// Moves the counts of all threads into one counter.
  const WordCounts& all_counts() {
    Lease lease(*this);
    WordCounts& all = lease.counter().counts();
    const std::lock_guard lock(mutex_);
    for (const auto& counter : idle_) all.add(std::exchange(counter->counts(), {}));
    idle_.clear();
    return all;
  }

  const PreTokenizers gpt2_ = gpt2_pre_tokenizers();
  std::mutex mutex_;
  std::vector<std::unique_ptr<WordCounter>> idle_;  ///< not used by any thread
};

}  // namespace

std::unique_ptr<BpeTrainer> make_gpt2_trainer() {
  return std::make_unique<Gpt2Trainer>();
}

}  // namespace dstrain::tokenizer
