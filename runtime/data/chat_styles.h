#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/data/json_record.h"

namespace dstrain::data {

/// A conversation as the text on which the model is trained.
struct RenderedChat {
  /// Bytes [begin, end) of the text.
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool operator==(const Range&) const = default;
  };
  std::string text;
  /// Each answer with the marker that ends its turn, which is the output of the model.
  std::vector<Range> answers;
};

/// Settings of a template that differ within its family.
struct ChatDetails {
  std::string bos;  ///< texts of special tokens
  std::string eos;
  std::string system;      ///< replaces a missing system message
  std::string after_turn;  ///< follows the end of an answer
};

/// Renders messages, at least one, in one family of templates. The failure is the template's own
/// error for such messages, or names a role that it does not support.
using ChatStyle = Result<RenderedChat> (*)(std::span<const Message>, const ChatDetails&);

Result<RenderedChat> render_llama2(std::span<const Message> messages, const ChatDetails& details);
Result<RenderedChat> render_llama3(std::span<const Message> messages, const ChatDetails& details);
/// Its system header has dates: the knowledge cutoff, and 26 Jul 2024.
Result<RenderedChat> render_llama3_1(std::span<const Message> messages, const ChatDetails& details);
Result<RenderedChat> render_mistral(std::span<const Message> messages, const ChatDetails& details);
/// Mistral's first tokenizer, in the later version with system messages, which are joined to the
/// first question.
Result<RenderedChat> render_mistral_v1(std::span<const Message> messages,
                                       const ChatDetails& details);
/// Mistral's third tokenizer: a system message is joined to the last question, and only if nothing
/// follows that. One that would be dropped is an error.
Result<RenderedChat> render_mistral_v3(std::span<const Message> messages,
                                       const ChatDetails& details);
/// The same with Tekken, for Mistral Nemo: no blanks around contents.
Result<RenderedChat> render_mistral_nemo(std::span<const Message> messages,
                                         const ChatDetails& details);
/// Also Qwen 2's, with details.system.
Result<RenderedChat> render_chatml(std::span<const Message> messages, const ChatDetails& details);
/// Qwen 2.5's, and, without details.system, that of the non-thinking Qwen 3 models: ChatML for the
/// roles that they know.
Result<RenderedChat> render_qwen2_5(std::span<const Message> messages, const ChatDetails& details);
/// Drops the thoughts of answers before the last question; the last answer always has a place for
/// them.
Result<RenderedChat> render_qwen3(std::span<const Message> messages, const ChatDetails& details);

}  // namespace dstrain::data
