#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace dstrain::tokenizer {

/// A trained vocabulary, as the files of a Hugging Face directory.
struct LearntTokenizer {
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  /// Smaller than requested if no pair of tokens was left that occurs twice.
  std::int64_t vocabulary_size = 0;
};

/// Trains GPT-2's byte-level BPE (Radford et al., 2019) on texts. tokenizer_json is byte for byte
/// what Hugging Face's `tokenizers` 0.23.3 saves after training a BpeTrainer on the same texts with
/// the special token <|endoftext|>, the alphabet of bytes and a min_frequency of 2. Id 0 is
/// <|endoftext|>, 1 to 256 are the bytes, and the merges follow in their order. The result does not
/// depend on the order of the texts or the number of threads that add them.
class BpeTrainer {
 public:
  BpeTrainer() = default;
  BpeTrainer(const BpeTrainer&) = delete;
  BpeTrainer& operator=(const BpeTrainer&) = delete;
  virtual ~BpeTrainer() = default;

  /// Counts the words of a text of any size, cut like `Tokenizer::encode` does. Invalid UTF-8
  /// counts as U+FFFD. Names of special tokens are plain text. A text that does not fit into memory
  /// may be added in pieces that end at `safe_cut`. Threads may call it concurrently; until
  /// `learn`, each uses some 50 bytes per different word, plus its letters.
  virtual void add(std::string_view text) = 0;

  /// Returns the last place at which a text that continues may be cut without changing its words;
  /// 0: none.
  [[nodiscard]] virtual std::size_t safe_cut(std::string_view text) const = 0;

  /// Learns a vocabulary of at most this many tokens (at least 257) from the texts so far, on one
  /// thread. Do not add texts meanwhile. Uses some 20 bytes per letter of the different words. May
  /// be called again, also after adding more. Throws Error{usage}.
  virtual LearntTokenizer learn(std::int64_t vocabulary_size) = 0;
};

/// Throws Error{config} if the plug-in for tokenizers is missing.
std::unique_ptr<BpeTrainer> make_bpe_trainer();

}  // namespace dstrain::tokenizer
