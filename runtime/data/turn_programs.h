#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

/// How jq makes messages of the conversations of other programs.
namespace dstrain::data {

/// What others call the roles of user and assistant, in small letters.
inline constexpr std::array<std::string_view, 2> foreign_users{"human", "prompter"};
inline constexpr std::array<std::string_view, 6> foreign_assistants{"gpt",     "model", "bot",
                                                                    "chatgpt", "ai",    "bard"};

/// Whether a role is one of ours under another name, or in other letters.
bool is_foreign_role(std::string_view role);

/// "user" for "Human"; the role in small letters if it is nobody else's name of one.
std::string role_in_ours(std::string_view role);

/// Whether a role is one that models know: those of chats with tools are, though not all templates
/// take them.
bool is_known_role(std::string_view role);

/// A role of nobody's custom, and the one of ours that it stands for.
struct RoleName {
  std::string name;
  std::string_view role;
};

/// What makes our names of others' in jq.
std::string rename_in_jq(std::span<const RoleName> others = {});

/// The key of a record that has its system message, even an empty one; empty: none has.
std::string_view system_key(const nlohmann::json& record);

/// The first turns of a conversation, each with a comma behind it: the system message under `key`,
/// if it is not empty, and Alpaca's history of questions and answers, which later records may have.
/// None: the history is of another form.
std::string system_in_jq(std::string_view key);
std::optional<std::string> history_in_jq(const nlohmann::json& record);

/// Under which a record has a list of turns of a known form; empty: it has none.
std::string_view turns_key(const nlohmann::json& record);

/// For a record with a list of turns; "." if they are messages already; none: it has no such list,
/// or of an unknown form.
std::optional<std::string> turns_program(const nlohmann::json& record);

/// For messages whose content is a list of parts, if those of `content` are all text.
std::optional<std::string> parts_program(const nlohmann::json& content);

/// Throws Error{input} naming the turn that cannot be kept, or the key beside them.
void refuse_turns(const nlohmann::json& record, const std::string& place);

}  // namespace dstrain::data
