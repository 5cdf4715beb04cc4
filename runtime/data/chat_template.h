#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/data/chat_styles.h"

namespace dstrain::data {

/// The texts of special tokens that templates name; empty: none.
struct SpecialTokenTexts {
  std::string bos;
  std::string eos;
};

/// Renders conversations as transformers' `apply_chat_template` does for messages of role and
/// content, for the published templates of Llama 2, 3 and 3.1, Mistral (instruct v0.1, v0.2), Qwen
/// 2, 2.5 and 3, and ChatML. Does not run Jinja: it recognises the template's text. Immutable, so
/// threads may share one.
class ChatTemplate {
 public:
  /// Recognises the text of a Jinja template. White space between its tags and the kind of its
  /// quotes may differ from the published text. The failure names the supported templates.
  static Result<ChatTemplate> recognise(std::string_view jinja, const SpecialTokenTexts& tokens);
  /// Loads the template of a model's directory: `chat_template.jinja`, else `chat_template` of
  /// `tokenizer_config.json`; from a list of templates, the one named "default".
  static Result<ChatTemplate> load(const std::filesystem::path& directory);

  /// Returns "Llama 2", ...
  [[nodiscard]] std::string_view name() const { return name_; }
  /// See ChatStyle. Messages of a role that the template silently drops are a failure.
  [[nodiscard]] Result<RenderedChat> render(std::span<const Message> messages) const {
    return style_(messages, details_);
  }

 private:
  ChatTemplate(std::string_view name, ChatStyle style, ChatDetails details)
      : name_(name), style_(style), details_(std::move(details)) {}

  std::string_view name_;
  ChatStyle style_;
  ChatDetails details_;
};

}  // namespace dstrain::data
