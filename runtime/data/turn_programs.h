#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

/// Makes jq programs that turn conversations of other programs into messages.
namespace dstrain::data {

/// Names in other programs for the roles of user and assistant, in lower case.
inline constexpr std::array<std::string_view, 2> foreign_users{"human", "prompter"};
inline constexpr std::array<std::string_view, 6> foreign_assistants{"gpt",     "model", "bot",
                                                                    "chatgpt", "ai",    "bard"};

/// Whether a role is one of ours under another name, or in other case.
bool is_foreign_role(std::string_view role);

/// Returns "user" for "Human"; the role in lower case if it is not a known name.
std::string role_in_ours(std::string_view role);

/// Whether models know a role. Those of chats with tools are known, though not all templates accept
/// them.
bool is_known_role(std::string_view role);

/// An unusual role name, and our role that it stands for.
struct RoleName {
  std::string name;
  std::string_view role;
};

/// Returns the jq program that replaces others' names by ours.
std::string rename_in_jq(std::span<const RoleName> others = {});

/// Returns the key of a record's system message, even an empty one; empty: it has none.
std::string_view system_key(const nlohmann::json& record);

/// Returns the first turns of a conversation, each followed by a comma: the system message under
/// `key`, if it is not empty, and Alpaca's history of questions and answers, which later records
/// may have. None: the history has another form.
std::string system_in_jq(std::string_view key);
std::optional<std::string> history_in_jq(const nlohmann::json& record);

/// Returns the key of a list of turns of a known form; empty: there is none.
std::string_view turns_key(const nlohmann::json& record);

/// Returns the program for a record with a list of turns; "." if they are messages already; none:
/// there is no such list, or its form is unknown.
std::optional<std::string> turns_program(const nlohmann::json& record);

/// Returns the program for messages whose content is a list of parts, if those of `content` are all
/// text.
std::optional<std::string> parts_program(const nlohmann::json& content);

/// Throws Error{input} naming the turn that cannot be kept, or the key beside the turns.
void refuse_turns(const nlohmann::json& record, const std::string& place);

}  // namespace dstrain::data
