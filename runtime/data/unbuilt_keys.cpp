#include "runtime/data/unbuilt_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/shell_word.h"
#include "runtime/data/jq_command.h"

namespace dstrain::data {
namespace {

using nlohmann::json;

/// Returns a command to end a message, which keeps the conversations of which `test` is true for
/// all messages; empty without a file.
std::string leave_out_command(const std::string& file, std::string_view test) {
  if (file.empty()) return {};
  const std::string lines = jq_lines(fmt::format("fromjson | all(.messages[]; {})", test));
  return command_below(whole_or_none(reading(lines, file), converted_name(file)));
}

/// Refuses a weight other than 1: without it the answer would be learned as any other.
void refuse_weight(const json& message, const std::string& place, const std::string& file) {
  static constexpr std::array<std::string_view, 5> keys{"weight", "train", "training", "loss",
                                                        "output_with_loss"};
  for (const std::string_view key : keys) {
    const auto field = message.find(key);
    if (field == message.end() || says_nothing(*field)) continue;
    fail(ErrorCode::input,
         "{}: {} {} is not implemented: the answer would be learned as any other; split the "
         "conversation before it, or leave the record out{}",
         place, key, field->dump(),
         leave_out_command(
             file, fmt::format(".role != \"assistant\" or (.{} | . == null or . == true or . == 1)",
                               key)));
  }
}

/// A call of a tool in place of words: without it nothing is left of the message.
void refuse_bare_calls(const json& message, const std::string& place, const std::string& file) {
  static constexpr std::array<std::string_view, 3> contents{"content", "value", "text"};
  static constexpr std::array<std::string_view, 2> calls{"tool_calls", "function_call"};
  const auto holds = [&](std::string_view key) {
    const auto field = message.find(key);
    return field != message.end() && !holds_nothing(*field);
  };
  if (std::ranges::any_of(contents, holds)) return;
  for (const std::string_view key : calls) {
    if (!holds(key)) continue;
    fail(ErrorCode::input,
         "{}: {} is not implemented, and the message has no content beside it; leave the "
         "conversation out{}",
         place, key, leave_out_command(file, fmt::format("(.{} // []) | length == 0", key)));
  }
}

}  // namespace

bool holds_nothing(const json& value) {
  if (!value.is_string()) return value.empty();
  const auto& text = value.get_ref<const std::string&>();
  return text.empty() || text == "[]";
}

bool says_nothing(const json& value) {
  return holds_nothing(value) || value == true || value == 1;
}

void refuse_keys(const json& object,
                 std::span<const std::string_view> keys,
                 const std::string& place) {
  for (const std::string_view key : keys) {
    const auto field = object.find(key);
    if (field == object.end() || says_nothing(*field)) continue;
    fail(ErrorCode::input, "{}: {} is not implemented; leave it out", place, key);
  }
}

void refuse_record_keys(const json& record, const std::string& place) {
  static constexpr std::array<std::string_view, 7> keys{"tools", "images", "image", "videos",
                                                        "video", "audios", "audio"};
  refuse_keys(record, keys, place);
}

void refuse_judgement(const json& record, const std::string& place) {
  const auto label = record.find("label");
  if (label != record.end() && *label == false) {  // KTO's label
    fail(ErrorCode::input,
         "{}: label false is not implemented: the answer would be learned as a good one; leave the "
         "record out",
         place);
  }
  const auto weight = record.find("weight");
  if (weight == record.end() || says_nothing(*weight)) return;
  fail(ErrorCode::input,
       "{}: weight {} is not implemented: the record would be learned as any other; leave it out",
       place, weight->dump());
}

void refuse_conversation_keys(const json& record, const std::string& place) {
  static constexpr std::array<std::string_view, 3> keys{"functions", "documents",
                                                        "chat_template_kwargs"};
  refuse_keys(record, keys, place);
  // In NeMo, the name of the speaker that is not learned; here only answers are learned.
  const auto mask = record.find("mask");
  if (mask == record.end() || says_nothing(*mask)) return;
  if (*mask == "User" || *mask == "user" || *mask == "human") return;
  fail(ErrorCode::input, "{}: mask is not implemented, but for \"User\"", place);
}

void refuse_message(const json& message,
                    std::string_view role,
                    const std::string& place,
                    const std::string& file) {
  static constexpr std::array<std::string_view, 6> keys{
      "tool_calls", "tool_call_id", "function_call", "reasoning_content", "reasoning", "thinking"};
  static constexpr std::array<std::string_view, 3> roles{"function_call", "function-call",
                                                         "observation"};
  refuse_bare_calls(message, place, file);
  refuse_keys(message, keys, place);
  if (std::ranges::find(roles, role) != roles.end()) {
    fail(ErrorCode::input, "{}: the role {} is not implemented; leave the record out", place, role);
  }
  // Turns other than answers are not learned, whatever `mask` says.
  constexpr std::array<std::string_view, 5> asking{"system", "user", "human", "prompter", "tool"};
  if (std::ranges::find(asking, role) == asking.end()) refuse_weight(message, place, file);
}

}  // namespace dstrain::data
