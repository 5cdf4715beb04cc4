#include "runtime/data/unbuilt_keys.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"

namespace dstrain::data {
namespace {

using nlohmann::json;

/// Refuses a weight other than 1: without it the answer would be learned as any other.
void refuse_weight(const json& message, const std::string& place) {
  static constexpr std::array<std::string_view, 5> keys{"weight", "train", "training", "loss",
                                                        "output_with_loss"};
  for (const std::string_view key : keys) {
    const auto field = message.find(key);
    if (field == message.end() || says_nothing(*field)) continue;
    fail(ErrorCode::input,
         "{}: {} {} is not implemented: the answer would be learned as any other; leave the record "
         "out",
         place, key, field->dump());
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

void refuse_message(const json& message, std::string_view role, const std::string& place) {
  static constexpr std::array<std::string_view, 6> keys{
      "tool_calls", "tool_call_id", "function_call", "reasoning_content", "reasoning", "thinking"};
  static constexpr std::array<std::string_view, 3> roles{"function_call", "function-call",
                                                         "observation"};
  refuse_keys(message, keys, place);
  if (std::ranges::find(roles, role) != roles.end()) {
    fail(ErrorCode::input, "{}: the role {} is not implemented; leave the record out", place, role);
  }
  // Turns other than answers are not learned, whatever `mask` says.
  constexpr std::array<std::string_view, 5> asking{"system", "user", "human", "prompter", "tool"};
  if (std::ranges::find(asking, role) == asking.end()) refuse_weight(message, place);
}

}  // namespace dstrain::data
