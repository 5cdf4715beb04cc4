#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/text_encoder.h"
#include "runtime/model/model.h"

namespace dstrain::cmd {

/// What a model continues, as tokens: a decoder's prompt, or an encoder-decoder's source.
using Prompt = std::vector<std::int32_t>;

/// Makes prompts for a model. `encoder` and `model` must outlive it. Its functions throw
/// Error{input}, or Error{usage} for an empty text without a token that begins texts.
class PromptReader {
 public:
  PromptReader(const data::TextEncoder& encoder, const model::Model& model)
      : encoder_(encoder), model_(model) {}

  /// Returns the tokens of a text, with those that begin each text: the tokenizer's own, or of an
  /// empty one its begin-of-text token alone. `place`: for messages.
  [[nodiscard]] Prompt of_text(const std::string& text, const std::string& place) const;
  /// Returns the prompts of a file of JSON lines, each with `prompt` (text), `messages` (the chat
  /// template is applied) or `prompt_ids` (token ids); other keys are ignored.
  [[nodiscard]] std::vector<Prompt> of_file(const std::string& path) const;

 private:
  [[nodiscard]] Prompt of_record(const std::string& text,
                                 std::int64_t line,
                                 const std::string& path) const;
  void check(const Prompt& prompt, const std::string& place) const;

  const data::TextEncoder& encoder_;
  const model::Model& model_;
};

}  // namespace dstrain::cmd
