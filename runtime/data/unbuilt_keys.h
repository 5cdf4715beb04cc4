#pragma once
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

/// Keys that change what the model sees or learns, and for which nothing is built. Records of other
/// programs have them too, so that no command converts what would be refused afterwards.
namespace dstrain::data {

/// Whether a value is null or empty, also as LLaMA-Factory writes an empty list: "[]". Numbers and
/// truths are not.
bool holds_nothing(const nlohmann::json& value);

/// Whether the value of such a key is empty, true or 1: no tools, a weight of 1.
bool says_nothing(const nlohmann::json& value);

/// Throws Error{input} for the first of `keys` that says something.
void refuse_keys(const nlohmann::json& object,
                 std::span<const std::string_view> keys,
                 const std::string& place);

/// Tools and images of any record.
void refuse_record_keys(const nlohmann::json& record, const std::string& place);
/// That its answer is a bad one, or counts less than others.
void refuse_judgement(const nlohmann::json& record, const std::string& place);
/// What only records of messages have beside them.
void refuse_conversation_keys(const nlohmann::json& record, const std::string& place);
/// Of one message: tool calls, thoughts, a weight of an answer. `place` names the message too.
void refuse_message(const nlohmann::json& message, std::string_view role, const std::string& place);

}  // namespace dstrain::data
