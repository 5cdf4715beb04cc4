#include "runtime/data/chat_styles.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "runtime/base/printable.h"

namespace dstrain::data {
namespace {

constexpr std::string_view roles_alternate =
    "Conversation roles must alternate user/assistant/user/assistant/...";

/// The characters that Python's str.strip() removes, as UTF-8.
constexpr std::array<std::string_view, 29> white_space{
    "\t",           "\n",           "\v",           "\f",           "\r",
    "\x1c",         "\x1d",         "\x1e",         "\x1f",         " ",
    "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81",
    "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86",
    "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
    "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"};

std::string_view strip(std::string_view text) {
  const auto* space = white_space.begin();
  const auto begins = [&](std::string_view s) {
    return text.starts_with(s);
  };
  const auto ends = [&](std::string_view s) {
    return text.ends_with(s);
  };
  while ((space = std::ranges::find_if(white_space, begins)) != white_space.end()) {
    text.remove_prefix(space->size());
  }
  while ((space = std::ranges::find_if(white_space, ends)) != white_space.end()) {
    text.remove_suffix(space->size());
  }
  return text;
}

std::string_view strip_newlines_before(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}

std::string_view strip_newlines_after(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

Failure says(std::string_view reason) {
  return Failure{fmt::format("messages: the chat template says: {}", reason)};
}

Failure no_meaning(std::size_t index, const std::string& role) {
  return Failure{
      fmt::format("messages[{}].role is '{}', which has no meaning in the chat template; "
                  "known are system, user and assistant",
                  index, printable(role))};
}

/// Builds a text and records the answers in it.
class Writer {
 public:
  template <class... Parts>
  void write(const Parts&... parts) {
    (chat_.text.append(parts), ...);
  }
  /// Appends an answer and its end-of-turn marker.
  template <class... Parts>
  void write_answer(const Parts&... parts) {
    const std::size_t begin = chat_.text.size();
    write(parts...);
    chat_.answers.push_back({begin, chat_.text.size()});
  }
  RenderedChat take() { return std::move(chat_); }

 private:
  RenderedChat chat_;
};

void write_chatml_turn(Writer& writer, const Message& message, std::string_view content) {
  writer.write("<|im_start|>", message.role, "\n");
  if (message.role == "assistant") {
    writer.write_answer(content, "<|im_end|>");
  } else {
    writer.write(content, "<|im_end|>");
  }
  writer.write("\n");
}

void write_llama3_turn(Writer& writer, const Message& message) {
  writer.write("<|start_header_id|>", message.role, "<|end_header_id|>\n\n");
  if (message.role == "assistant") {
    writer.write_answer(strip(message.content), "<|eot_id|>");
  } else {
    writer.write(strip(message.content), "<|eot_id|>");
  }
}

/// Returns the last user message that is not a tool response; else the last message.
std::size_t last_question(std::span<const Message> messages) {
  for (std::size_t i = messages.size(); i-- > 0;) {
    const std::string& content = messages[i].content;
    const bool is_response =
        content.starts_with("<tool_response>") && content.ends_with("</tool_response>");
    if (messages[i].role == "user" && !is_response) return i;
  }
  return messages.size() - 1;
}

struct Thought {
  std::string_view thought;
  std::string_view answer;
};

/// Returns the text between <think> and </think>, and the text after it.
Thought split_thought(std::string_view content) {
  constexpr std::string_view opening = "<think>";
  constexpr std::string_view closing = "</think>";
  const std::size_t first = content.find(closing);
  if (first == std::string_view::npos) return {{}, content};
  std::string_view thought = strip_newlines_after(content.substr(0, first));
  if (const std::size_t open = thought.rfind(opening); open != std::string_view::npos) {
    thought.remove_prefix(open + opening.size());
  }
  return {strip_newlines_before(thought),
          strip_newlines_before(content.substr(content.rfind(closing) + closing.size()))};
}

/// Returns the system message with the separator before its question.
std::string system_part(std::span<const Message> messages) {
  return messages.front().role == "system" ? messages.front().content + "\n\n" : "";
}

constexpr std::string_view mistral_roles_alternate =
    "After the optional system message, conversation roles must alternate "
    "user/assistant/user/assistant/...";
constexpr std::string_view mistral_roles =
    "Only user and assistant roles are supported, with the exception of an initial optional system "
    "message!";

/// Checks the rules that all templates of Mistral's third tokenizer share.
std::optional<Failure> mistral_v3_problem(std::span<const Message> messages) {
  const std::size_t first = messages.front().role == "system" ? 1 : 0;
  for (std::size_t i = first; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (role == "tool" || role == "tool_results") return no_meaning(i, role);
    if ((role == "user") != ((i - first) % 2 == 0)) return says(mistral_roles_alternate);
  }
  for (const Message& message : messages.subspan(first)) {
    if (message.role != "user" && message.role != "assistant") return says(mistral_roles);
  }
  if (first == 0 || messages.back().role == "user") return std::nullopt;
  return Failure{
      "messages[0].role is 'system', which has no meaning in the chat template unless the last "
      "message is the user's"};
}

}  // namespace

Result<RenderedChat> render_llama2(std::span<const Message> messages, const ChatDetails& details) {
  const bool has_system = messages.front().role == "system";
  const std::span<const Message> turns = messages.subspan(has_system ? 1 : 0);
  Writer writer;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const auto& [role, content] = turns[i];
    if ((role == "user") != (i % 2 == 0)) return says(roles_alternate);
    const std::string question =
        i == 0 && has_system ? "<<SYS>>\n" + messages.front().content + "\n<</SYS>>\n\n" + content
                             : content;
    if (role == "user") {
      writer.write(details.bos, "[INST] ", strip(question), " [/INST]");
    } else if (role == "assistant") {
      writer.write_answer(" ", strip(content), " ", details.eos);
    } else {
      return no_meaning(i + (has_system ? 1 : 0), role);
    }
  }
  return writer.take();
}

Result<RenderedChat> render_llama3(std::span<const Message> messages, const ChatDetails& details) {
  Writer writer;
  writer.write(details.bos);
  for (const Message& message : messages) write_llama3_turn(writer, message);
  return writer.take();
}

Result<RenderedChat> render_llama3_1(std::span<const Message> messages,
                                     const ChatDetails& details) {
  const bool has_system = messages.front().role == "system";
  Writer writer;
  writer.write(details.bos, "<|start_header_id|>system<|end_header_id|>\n\n",
               "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n",
               has_system ? strip(messages.front().content) : "", "<|eot_id|>");
  for (std::size_t i = has_system ? 1 : 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (role == "tool" || role == "ipython") return no_meaning(i, role);
    write_llama3_turn(writer, messages[i]);
  }
  return writer.take();
}

Result<RenderedChat> render_mistral(std::span<const Message> messages, const ChatDetails& details) {
  Writer writer;
  writer.write(details.bos);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, content] = messages[i];
    if ((role == "user") != (i % 2 == 0)) return says(roles_alternate);
    if (role == "user") {
      writer.write("[INST] ", content, " [/INST]");
    } else if (role == "assistant") {
      writer.write_answer(content, details.eos);
      writer.write(details.after_turn);
    } else {
      return says("Only user and assistant roles are supported!");
    }
  }
  return writer.take();
}

Result<RenderedChat> render_mistral_v1(std::span<const Message> messages,
                                       const ChatDetails& details) {
  const std::size_t first = messages.front().role == "system" ? 1 : 0;
  if (first == messages.size()) return no_meaning(0, "system");
  Writer writer;
  writer.write(details.bos);
  for (std::size_t i = first; i < messages.size(); ++i) {
    const auto& [role, content] = messages[i];
    if ((role == "user") != ((i - first) % 2 == 0)) return says(mistral_roles_alternate);
    if (role == "user") {
      writer.write(" [INST] ", i == first ? system_part(messages) : "", content, " [/INST]");
    } else if (role == "assistant") {
      writer.write_answer(" ", content, details.eos);
    } else {
      return says(mistral_roles);
    }
  }
  return writer.take();
}

Result<RenderedChat> render_mistral_v3(std::span<const Message> messages,
                                       const ChatDetails& details) {
  if (auto problem = mistral_v3_problem(messages)) return *problem;
  Writer writer;
  writer.write(details.bos);
  for (const Message& message : messages) {
    const bool last = &message == &messages.back();
    if (message.role == "user") {
      writer.write("[INST] ", last ? system_part(messages) : "", message.content, "[/INST]");
    } else if (message.role == "assistant") {
      writer.write_answer(" ", strip(message.content), details.eos);
    }
  }
  return writer.take();
}

Result<RenderedChat> render_mistral_nemo(std::span<const Message> messages,
                                         const ChatDetails& details) {
  if (auto problem = mistral_v3_problem(messages)) return *problem;
  Writer writer;
  writer.write(details.bos);
  for (const Message& message : messages) {
    const bool last = &message == &messages.back();
    if (message.role == "user") {
      writer.write("[INST]", last ? system_part(messages) : "", message.content, "[/INST]");
    } else if (message.role == "assistant") {
      writer.write_answer(message.content, details.eos);
    }
  }
  return writer.take();
}

Result<RenderedChat> render_chatml(std::span<const Message> messages, const ChatDetails& details) {
  Writer writer;
  if (!details.system.empty() && messages.front().role != "system") {
    write_chatml_turn(writer, {"system", {}}, details.system);
  }
  for (const Message& message : messages) write_chatml_turn(writer, message, message.content);
  return writer.take();
}

Result<RenderedChat> render_qwen2_5(std::span<const Message> messages, const ChatDetails& details) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (role != "system" && role != "user" && role != "assistant") return no_meaning(i, role);
  }
  return render_chatml(messages, details);
}

Result<RenderedChat> render_qwen3(std::span<const Message> messages, const ChatDetails& details) {
  const std::size_t question = last_question(messages);
  Writer writer;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, content] = messages[i];
    if (role == "user" || role == "system") {
      write_chatml_turn(writer, messages[i], content);
      continue;
    }
    if (role != "assistant") return no_meaning(i, role);
    const auto [thought, answer] = split_thought(content);
    const bool thinks = i > question && (i + 1 == messages.size() || !thought.empty());
    writer.write("<|im_start|>assistant\n");
    if (thinks) {
      writer.write_answer("<think>\n", strip_newlines_after(strip_newlines_before(thought)),
                          "\n</think>\n\n", strip_newlines_before(answer), "<|im_end|>");
    } else {
      writer.write_answer(answer, "<|im_end|>");
    }
    writer.write(details.after_turn);
  }
  return writer.take();
}

}  // namespace dstrain::data
