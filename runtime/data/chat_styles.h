#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/data/json_record.h"

namespace dstrain::data {

/// A conversation as the text that its model is trained on.
struct RenderedChat {
  /// Bytes [begin, end) of the text.
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool operator==(const Range&) const = default;
  };
  std::string text;
  /// Each answer with the marker that ends its turn: what the model writes when it is asked.
  std::vector<Range> answers;
};

/// What a template says beyond its family.
struct ChatDetails {
  std::string bos;  ///< texts of special tokens
  std::string eos;
  std::string system;      ///< stands in for a missing system message
  std::string after_turn;  ///< follows the end of an answer
};

/// How one family of templates writes messages down, which are at least one. The failure says what
/// the template says of such messages, or which role has no meaning in it.
using ChatStyle = Result<RenderedChat> (*)(std::span<const Message>, const ChatDetails&);

Result<RenderedChat> render_llama2(std::span<const Message> messages, const ChatDetails& details);
Result<RenderedChat> render_llama3(std::span<const Message> messages, const ChatDetails& details);
/// Its system header tells dates: when knowledge ends, and 26 Jul 2024.
Result<RenderedChat> render_llama3_1(std::span<const Message> messages, const ChatDetails& details);
Result<RenderedChat> render_mistral(std::span<const Message> messages, const ChatDetails& details);
/// Mistral's first tokenizer, as published again with system messages, which go with the first
/// question.
Result<RenderedChat> render_mistral_v1(std::span<const Message> messages,
                                       const ChatDetails& details);
/// Mistral's third tokenizer: a system message goes with the last question, and only if nothing
/// follows that; one that would be left out is refused.
Result<RenderedChat> render_mistral_v3(std::span<const Message> messages,
                                       const ChatDetails& details);
/// The same with Tekken, of Mistral Nemo: no blanks around contents.
Result<RenderedChat> render_mistral_nemo(std::span<const Message> messages,
                                         const ChatDetails& details);
/// With details.system also Qwen 2's.
Result<RenderedChat> render_chatml(std::span<const Message> messages, const ChatDetails& details);
/// Qwen 2.5's, and without details.system Qwen 3's that do not think: ChatML for the roles that
/// they know.
Result<RenderedChat> render_qwen2_5(std::span<const Message> messages, const ChatDetails& details);
/// Thoughts of answers before the last question are left out; the last answer always has a place
/// for them.
Result<RenderedChat> render_qwen3(std::span<const Message> messages, const ChatDetails& details);

}  // namespace dstrain::data
