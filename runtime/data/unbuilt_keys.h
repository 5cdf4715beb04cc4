#pragma once
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

/// Keys that change what the model sees or learns, and that are not supported. They are checked in
/// records of other programs too, so that no command produces records that are refused later.
namespace dstrain::data {

/// Whether a value is null or empty, also LLaMA-Factory's empty list: "[]". Numbers and booleans
/// are not.
bool holds_nothing(const nlohmann::json& value);

/// Whether the value of such a key has no effect: empty, true or 1, such as no tools, or a weight
/// of 1.
bool says_nothing(const nlohmann::json& value);

/// Throws Error{input} for the first of `keys` that has an effect.
void refuse_keys(const nlohmann::json& object,
                 std::span<const std::string_view> keys,
                 const std::string& place);

/// Refuses tools and images in any record.
void refuse_record_keys(const nlohmann::json& record, const std::string& place);
/// Refuses a record whose answer is marked as bad, or counts less than others.
void refuse_judgement(const nlohmann::json& record, const std::string& place);
/// Refuses keys that only records of messages have.
void refuse_conversation_keys(const nlohmann::json& record, const std::string& place);
/// Refuses keys of one message: tool calls, thoughts, a weight of an answer. `place` names the
/// message too. With the `file` of the records, some errors end with the command that leaves such
/// records out.
void refuse_message(const nlohmann::json& message,
                    std::string_view role,
                    const std::string& place,
                    const std::string& file = {});

}  // namespace dstrain::data
