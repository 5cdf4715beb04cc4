#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/comm/control/control_group.h"
#include "runtime/engine/decoder.h"
#include "runtime/engine/token_choice.h"

namespace dstrain::engine {

/// A text to generate.
struct TextRequest {
  /// At least one token; of an encoder-decoder, its source.
  std::vector<std::int32_t> prompt;
  std::int64_t max_new_tokens = 20;  ///< at least 1
  std::uint64_t variant = 0;         ///< which of several texts for the prompt
};

/// Why a text has ended.
enum class FinishReason : std::int8_t {
  eos,    ///< an end token, which is its last one
  stop,   ///< the listener has ended it
  length  ///< max_new_tokens, or the positions of the decoder
};

/// Receives texts as they grow. The calls of several texts interleave. A beam search gives the
/// num_return_sequences texts of a request, best first, when it has ended: text `i` of request `r`
/// has index r num_return_sequences + i. Else request and text have one index.
class TextListener {
 public:
  virtual ~TextListener() = default;
  enum class Answer { goes_on, ends };
  /// The next token of text `index`. The answer is ignored in a beam search.
  virtual Answer add(std::size_t index, std::int32_t token) = 0;
  virtual void end(std::size_t index, FinishReason reason) = 0;
  /// What this rank has for the others since the last call, and what rank `rank` had, itself
  /// included. Called together on all ranks now and then, and after the last text.
  virtual std::string outbox() { return {}; }
  virtual void inbox(int /*rank*/, std::string_view /*text*/) {}
};

/// Generates texts with a decoder. A free slot takes the next request at once, so that short texts
/// do not wait for long ones. With beams, a request has num_beams slots. A text depends on its
/// prompt, its variant and the options: not on the other requests, their order, or the number of
/// slots and ranks.
class Generator {
 public:
  enum class Cache : std::int8_t {
    fresh,  ///< each prompt is run as a whole
    /// A prompt that begins as the last text of its slot goes on from there. Its logits then differ
    /// in the last bits from those of the whole prompt.
    reused
  };
  struct Options {
    ChoiceOptions choice;
    /// Whether parameters are gathered for each pass, so that all ranks make the same passes.
    bool gathers = false;
    Cache cache = Cache::fresh;
  };
  /// All must outlive the generator. The decoder has a multiple of num_beams slots.
  Generator(Decoder& decoder, const Options& options, comm::ControlGroup& control);

  /// Generates the texts of this rank; other ranks have others, or none. Collective.
  void run(std::span<const TextRequest> requests, TextListener& listener);

 private:
  /// A text that is growing in a slot, or a beam.
  struct Text {
    std::size_t index = 0;                ///< of its request
    std::vector<std::int32_t> context{};  ///< tokens that the decoder has run or will run next
    std::int64_t given = 0;               ///< how many of them the text began with
    std::int64_t run = 0;                 ///< how many of them are in the cache
    bool active = false;
    bool begun = false;  ///< the sources and the prompt have run
    std::int32_t source_count = 0;

    /// Whether tokens that it begins with have to run.
    [[nodiscard]] bool waits() const { return active && !begun; }
  };
  enum class Pass : std::int8_t { none, prompt, decode };

  /// Gives requests to free slots.
  void prepare(std::span<const TextRequest> requests);
  [[nodiscard]] Pass next_pass() const;
  void begin_text(Text& text, const TextRequest& request, std::size_t index);
  void run_pass(Pass pass, std::span<const TextRequest> requests, TextListener& listener);
  /// A pass that all ranks make together. `prompts`: whether any runs a prompt.
  void run_shared(Pass own,
                  bool prompts,
                  std::span<const TextRequest> requests,
                  TextListener& listener);
  void run_prompt(Text& text, std::span<const TextRequest> requests, TextListener& listener);
  void run_decode(std::span<const TextRequest> requests, TextListener& listener);
  /// Goes on with a text behind its last token.
  void take_logits(Text& text,
                   const TextRequest& request,
                   std::span<float> logits,
                   TextListener& listener);
  void choose(Text& text,
              const TextRequest& request,
              std::span<float> logits,
              TextListener& listener);
  void search(Text& text, std::span<float> logits, TextListener& listener);
  /// Has the beams of a request as its search says.
  void place_beams(std::span<Text> beams, const BeamSearch& search);
  void end_search(std::span<Text> beams, const BeamSearch& search, TextListener& listener);
  [[nodiscard]] bool is_end(std::int32_t token) const;
  /// Returns the most new tokens of a request.
  [[nodiscard]] std::int64_t most_tokens(const Text& text, const TextRequest& request) const;

  Decoder& decoder_;
  Options options_;
  comm::ControlGroup& control_;
  TokenChooser chooser_;
  std::vector<Text> texts_;             ///< by slot; the beams of a request follow each other
  std::size_t beams_;                   ///< slots of a request
  std::vector<BeamSearch> searches_{};  ///< by slot / beams_, with beams
  std::size_t next_ = 0;                ///< request
  // Of a decoding pass, kept so that it allocates nothing.
  std::vector<std::int32_t> tokens_, slots_, past_, lengths_, source_counts_;
  std::vector<Decoder::Copy> copies_;
};

}  // namespace dstrain::engine
