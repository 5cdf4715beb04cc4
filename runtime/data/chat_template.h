#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/data/jinja/template.h"
#include "runtime/data/text_encoder.h"

namespace dstrain::data {

struct Conversation;

/// A conversation as the text on which the model is trained.
struct RenderedChat {
  std::string text;
  /// Each answer with the marker that ends its turn, which is the output of the model; ascending,
  /// without overlap.
  std::vector<ByteRange> answers;
};

/// Renders conversations as transformers' `apply_chat_template` does (5.24), and tells which text
/// is the assistant's. Immutable, so threads may share one.
///
/// If the template marks the assistant's text with {% generation %}, that is learned. Otherwise an
/// answer begins where the rendering of the messages before it, with the prompt for an answer,
/// leaves the rendering of the whole conversation. It ends behind the text of its message and the
/// special tokens that follow immediately, up to the end-of-text token, as far as the template
/// writes them whether or not messages follow. A conversation with A answers is rendered up to
/// 1 + 2A times.
class ChatTemplate {
 public:
  /// Texts of special tokens, by the names that templates use: bos_token, ...
  using TokenTexts = std::map<std::string, std::string, std::less<>>;

  /// The failure names the place in the template.
  static Result<ChatTemplate> parse(std::string_view jinja,
                                    const TokenTexts& tokens,
                                    const ChatOptions& options = {});
  /// Loads the templates of a model's directory: `chat_template.jinja` and those of
  /// `additional_chat_templates`, else `chat_template` of `tokenizer_config.json`, which is a text
  /// or a list of named ones, else that of `chat_template.json`. A template named "tool_use" is for
  /// conversations with tools; others are rendered by the one named "default".
  static Result<ChatTemplate> load(const std::filesystem::path& directory,
                                   const ChatOptions& options = {});

  /// `encoder` tells which texts are special tokens. The failure is the template's own error for
  /// such a conversation, or names what the template would silently drop: a message, its tool
  /// calls, the thoughts of the last answer, tools, documents.
  [[nodiscard]] Result<RenderedChat> render(const Conversation& conversation,
                                            const TextEncoder& encoder) const;
  /// Renders a conversation with the prompt for an answer behind it: what a model continues. If its
  /// last message is the assistant's, that is continued instead, without its end marker.
  [[nodiscard]] Result<std::string> render_prompt(const Conversation& conversation,
                                                  const TextEncoder& encoder) const;

 private:
  struct Source {
    std::string place;  ///< begins errors; empty: none
    jinja::Template text;
  };
  class Renderer;
  ChatTemplate(TokenTexts tokens, const ChatOptions& options)
      : tokens_(std::move(tokens)), options_(options) {}
  [[nodiscard]] const Source& choose(const Conversation& conversation) const;
  std::optional<Failure> add(std::string_view name, std::string_view jinja, std::string place);

  std::map<std::string, Source, std::less<>> sources_;  ///< by name
  TokenTexts tokens_;
  ChatOptions options_;
};

/// Returns the files of `additional_chat_templates` in a model's directory, sorted.
std::vector<std::filesystem::path> additional_chat_templates(
    const std::filesystem::path& directory);

}  // namespace dstrain::data
