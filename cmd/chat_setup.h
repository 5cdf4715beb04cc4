#pragma once
#include <span>
#include <string>

#include "cmd/text_setup.h"
#include "runtime/base/result.h"
#include "runtime/data/conversation.h"

namespace dstrain::cmd {

/// What `chat` needs, checked: every mistake in options and model directory is found while making
/// it.
struct ChatSetup {
  TextSetup texts;
  std::string system;               ///< empty: no system message
  std::int64_t length = 0;          ///< most tokens of a conversation
  std::int64_t max_new_tokens = 0;  ///< of an answer
  std::string mode;                 ///< how tokens are chosen, for people
};

/// `arguments`: what follows `chat`. Throws Error{usage}, Error{config} or Error{input}.
ChatSetup set_up_chat(std::span<const std::string> arguments, const TrainPlace& place);

std::string chat_help();

/// What makes a chat take less memory.
session::Remedies chat_remedies();

/// The messages of a conversation, and the tokens that the model continues.
class ChatHistory {
 public:
  /// Borrows `setup`.
  explicit ChatHistory(const ChatSetup& setup) : setup_(setup) { reset(); }

  /// Forgets all messages but the system's.
  void reset();
  /// Adds a message of the person and returns what the model continues. A failure says why there
  /// is no answer to it; the message is then forgotten.
  Result<engine::TextRequest> ask(const std::string& text);
  /// Adds the answer.
  void answer(const std::string& text);
  /// Whether there is no room after an answer of `tokens` to the last message.
  [[nodiscard]] bool is_full(std::int64_t tokens) const { return given_ + tokens >= setup_.length; }
  /// Returns that it is full then, and what to do.
  [[nodiscard]] std::string say_full(std::int64_t tokens = 0) const;

 private:
  void add(const char* role, const std::string& text);

  const ChatSetup& setup_;
  data::Conversation conversation_;
  std::int64_t given_ = 0;     ///< tokens of the last request
  std::uint64_t answers_ = 0;  ///< also of conversations that are forgotten
};

}  // namespace dstrain::cmd
