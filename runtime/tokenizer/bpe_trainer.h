#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace dstrain::tokenizer {

/// A vocabulary that was learnt, as the files of a Hugging Face directory.
struct LearntTokenizer {
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  /// Less than was asked for where no pair of tokens was left that comes twice.
  std::int64_t vocabulary_size = 0;
};

/// Learns the byte-level BPE of GPT-2 (Radford et al., 2019) from texts. tokenizer_json is, byte
/// for byte, what Hugging Face's `tokenizers` 0.23.3 saves after a BpeTrainer with the special
/// token <|endoftext|>, the alphabet of bytes and a min_frequency of 2 has seen the same texts:
/// id 0 is <|endoftext|>, 1 to 256 are the bytes, then come the merges in their order. That does
/// not depend on the order of texts, nor on how many threads give them.
class BpeTrainer {
 public:
  BpeTrainer() = default;
  BpeTrainer(const BpeTrainer&) = delete;
  BpeTrainer& operator=(const BpeTrainer&) = delete;
  virtual ~BpeTrainer() = default;

  /// Counts the words of a text of any size, cut as `Tokenizer::encode` cuts them; what is no UTF-8
  /// counts as U+FFFD. Names of special tokens are text like any other. A text that does not fit
  /// into memory may be given in pieces that end where `safe_cut` says. Threads may call it
  /// at once: each takes some 50 bytes a different word, and its letters, until `learn`.
  virtual void add(std::string_view text) = 0;

  /// The last place at which a text that goes on may be cut without changing its words; 0: none.
  [[nodiscard]] virtual std::size_t safe_cut(std::string_view text) const = 0;

  /// Learns a vocabulary of at most this many tokens, at least 257, from what was added so far; on
  /// one thread, and while no other adds. Takes some 20 bytes a letter of the different words.
  /// May be called again, also after more was added. Throws Error{usage}.
  virtual LearntTokenizer learn(std::int64_t vocabulary_size) = 0;
};

/// Throws Error{config} where the plug-in of tokenizers is missing.
std::unique_ptr<BpeTrainer> make_bpe_trainer();

}  // namespace dstrain::tokenizer
