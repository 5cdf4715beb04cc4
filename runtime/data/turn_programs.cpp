#include "runtime/data/turn_programs.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/data/unbuilt_keys.h"

namespace dstrain::data {
namespace {

using nlohmann::json;

/// Keys of lists of turns.
constexpr std::array<std::string_view, 8> list_keys{
    "conversations", "conversation", "messages", "data", "dialog", "dialogue", "items", "chat"};
/// Keys of a turn for the speaker, and the text.
constexpr std::array<std::string_view, 3> role_keys{"from", "role", "speaker"};
constexpr std::array<std::string_view, 3> content_keys{"value", "content", "text"};
/// Keys of a turn that is a question with its answer.
constexpr std::array<std::array<std::string_view, 2>, 4> both_keys{
    {{"human", "assistant"}, {"user", "assistant"}, {"input", "output"}, {"prompt", "response"}}};

/// Returns null if there is no such list, or it is empty.
const json* find_list(const json& record, std::string_view key) {
  const auto list = record.find(key);
  return list == record.end() || !list->is_array() || list->empty() ? nullptr : &*list;
}

template <std::size_t size>
std::string_view key_of(const json& turn, const std::array<std::string_view, size>& keys) {
  const auto* const found =
      std::ranges::find_if(keys, [&](std::string_view key) { return turn.contains(key); });
  return found == keys.end() ? std::string_view{} : *found;
}

/// Returns the role key of a turn that is one message.
std::string role_of(const json& turn) {
  const std::string_view key = key_of(turn, role_keys);
  if (key.empty()) return {};
  const json& role = *turn.find(key);
  return role.is_string() ? lower_case(role.get_ref<const std::string&>()) : "";
}

bool is_answer(std::string_view role) {
  return role == "assistant" ||
         std::ranges::find(foreign_assistants, role) != foreign_assistants.end();
}

/// Returns the first turn that needs another key for speaker or text; else the first one.
const json& turn_to_convert(const json& turns) {
  const auto found = std::ranges::find_if(turns, [](const json& turn) {
    const bool known =
        turn.is_object() && !key_of(turn, role_keys).empty() && !key_of(turn, content_keys).empty();
    return known && !(turn.contains("role") && turn.contains("content"));
  });
  return found == turns.end() ? turns.front() : *found;
}

/// Returns the program that makes messages of turns like `one`, and keeps their other keys.
std::optional<std::string> turn_in_jq(const json& one) {
  if (!one.is_object()) return std::nullopt;
  const std::string_view role = key_of(one, role_keys);
  const std::string_view content = key_of(one, content_keys);
  if (!role.empty() && !content.empty()) {
    if (role == "role" && content == "content") return ".";
    // Other turns may use the other common keys.
    const std::string_view other_role = role == "role" ? "from" : "role";
    const std::string_view other_content = content == "content" ? "value" : "content";
    return fmt::format(". + {{role: (.{} // .{} | {}), content: (.{} // .{})}} | del(.{}, .{})",
                       role, other_role, rename_in_jq(), content, other_content,
                       role == "role" ? other_role : role,
                       content == "content" ? other_content : content);
  }
  for (const auto& [question, answer] : both_keys) {
    if (!one.contains(question) || !one.contains(answer)) continue;
    return fmt::format(
        "{}{{role: \"user\", content: .{}}}, (. + {{role: \"assistant\", content: .{}}} | "
        "del(.{}, .{}, .system))",
        system_in_jq("system"), question, answer, question, answer);
  }
  return std::nullopt;
}

/// Whether the record has LLaMA-Factory's pair of answers, of which one is chosen.
bool has_chosen_turn(const json& record) {
  const auto chosen = record.find("chosen");
  return chosen != record.end() && chosen->is_object();
}

/// Returns the key of the system message that must become a turn; none: impossible. Empty: there is
/// none, or a turn repeats it.
std::optional<std::string_view> key_to_put_in(const json& record, const json& first) {
  const std::string_view key = system_key(record);
  if (key.empty() || role_of(first) != "system") return key;
  const json& system = *record.find(key);
  if (says_nothing(system)) return key;
  const std::string_view content = key_of(first, content_keys);
  if (!content.empty() && *first.find(content) == system) return std::string_view{};
  return std::nullopt;
}

/// Returns system_in_jq(), unless the first turn of the list repeats the message.
std::string system_before_in_jq(std::string_view system, std::string_view list) {
  if (system.empty()) return {};
  return fmt::format(
      "(select((.{0} // \"\") != \"\" and .{0} != (.{1}[0] | .value? // .content? // .text?)) | "
      "{{role: \"system\", content: .{0}}}), ",
      system, list);
}

/// Returns the program for the list of turns under `key`.
std::optional<std::string> program_of(const json& record, std::string_view key, const json& list) {
  const json& first = list.front();
  if (first.is_string()) {
    return fmt::format(
        ". + {{messages: [.{} | range(length) as $i | {{role: [\"user\", \"assistant\"][$i % 2], "
        "content: .[$i]}}]}} | del(.{})",
        key, key);
  }
  const auto turn = turn_in_jq(turn_to_convert(list));
  if (!turn) return std::nullopt;
  const auto system = key_to_put_in(record, first);
  if (!system || find_list(record, "history") != nullptr) return std::nullopt;
  const bool chosen = has_chosen_turn(record);
  const bool is_ours = *turn == "." && system->empty() && !chosen;
  if (is_ours && key == "messages") return ".";
  if (is_ours) return fmt::format(". + {{messages: .{}}} | del(.{})", key, key);
  // Records in ShareGPT's form may have a system message even if the first has none.
  const std::string_view put_in = system->empty() && *turn != "." ? "system" : *system;
  std::string turns = fmt::format(".{}[]", key);
  if (chosen) turns = fmt::format("(({} | .weight = 0), .chosen)", turns);
  if (*turn != ".") turns = fmt::format("({} | {})", turns, *turn);
  std::string program =
      fmt::format(". + {{messages: [{}{}]}}", system_before_in_jq(put_in, key), turns);
  std::string old = key == "messages" ? "" : fmt::format(".{}", key);
  if (!put_in.empty()) old += fmt::format("{}.{}", old.empty() ? "" : ", ", put_in);
  return old.empty() ? program : fmt::format("{} | del({})", program, old);
}

void refuse_answers(const json& turns, std::string_view key, const std::string& place) {
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (!turns[i].is_object() || !is_answer(role_of(turns[i]))) continue;
    fail(ErrorCode::input,
         "{}: {}[{}]: an answer that is not to be learned is not implemented; leave the record out",
         place, key, i);
  }
}

void refuse_messages(const json& turns, std::string_view key, const std::string& place) {
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (!turns[i].is_object()) continue;
    refuse_message(turns[i], role_of(turns[i]), fmt::format("{}: {}[{}]", place, key, i));
  }
}

}  // namespace

bool is_known_role(std::string_view role) {
  static constexpr std::array<std::string_view, 6> known{"system", "user",      "assistant",
                                                         "tool",   "developer", "ipython"};
  return std::ranges::find(known, role) != known.end();
}

bool is_foreign_role(std::string_view role) {
  const std::string name = lower_case(role);
  const bool ours = is_known_role(name);
  return (ours && name != role) || std::ranges::find(foreign_users, name) != foreign_users.end() ||
         std::ranges::find(foreign_assistants, name) != foreign_assistants.end();
}

std::string role_in_ours(std::string_view role) {
  std::string name = lower_case(role);
  if (std::ranges::find(foreign_users, name) != foreign_users.end()) return "user";
  return is_answer(name) ? "assistant" : name;
}

std::string rename_in_jq(std::span<const RoleName> others) {
  std::string pairs;
  for (const std::string_view name : foreign_users) pairs += fmt::format("{}: \"user\", ", name);
  for (const std::string_view name : foreign_assistants) {
    pairs += fmt::format("{}: \"assistant\", ", name);
  }
  for (const auto& [name, role] : others) {
    std::string key = json(lower_case(name)).dump();
    for (std::size_t at = 0; (at = key.find('\'', at)) != std::string::npos;) {
      key.replace(at, 1, "\\u0027");  // the program is in single quotes
    }
    pairs += fmt::format("{}: \"{}\", ", key, role);
  }
  return "ascii_downcase | {" + pairs.substr(0, pairs.size() - 2) + "}[.] // .";
}

std::string_view system_key(const json& record) {
  for (const std::string_view key : {"system", "system_prompt", "meta_instruction"}) {
    const auto field = record.find(key);
    if (field != record.end() && (field->is_string() || field->is_null())) return key;
  }
  return {};
}

std::string system_in_jq(std::string_view key) {
  if (key.empty()) return {};
  return fmt::format("(select((.{} // \"\") != \"\") | {{role: \"system\", content: .{}}}), ", key,
                     key);
}

std::optional<std::string> history_in_jq(const json& record) {
  const auto history = record.find("history");
  const bool known =
      history == record.end() || says_nothing(*history) ||
      (history->is_array() && history->front().is_array() && history->front().size() == 2);
  if (!known) return std::nullopt;
  return "((.history // [])[] | {role: \"user\", content: .[0]}, {role: \"assistant\", content: "
         ".[1]}), ";
}

std::string_view turns_key(const json& record) {
  const auto* const found = std::ranges::find_if(list_keys, [&](std::string_view key) {
    const json* const turns = find_list(record, key);
    if (turns == nullptr) return false;
    // UltraChat's data are strings; others have a list of records there.
    const bool strings = turns->front().is_string();
    const bool other = key == "data" ? !strings : strings && (key == "items" || key == "chat");
    return !other && program_of(record, key, *turns);
  });
  return found == list_keys.end() ? std::string_view{} : *found;
}

std::optional<std::string> turns_program(const json& record) {
  const std::string_view key = turns_key(record);
  return key.empty() ? std::nullopt : program_of(record, key, *find_list(record, key));
}

std::optional<std::string> parts_program(const json& content) {
  const bool text =
      content.is_array() && std::ranges::all_of(content, [](const json& part) {
        return part.is_object() && part.value("type", json()) == "text" && part.contains("text");
      });
  if (!text) return std::nullopt;
  return ".messages |= map(.content |= (if type == \"array\" and all(.type == \"text\") then "
         "map(.text) | join(\"\") else . end))";
}

void refuse_turns(const json& record, const std::string& place) {
  for (const std::string_view key : list_keys) {
    const json* const turns = find_list(record, key);
    if (turns == nullptr) continue;
    refuse_conversation_keys(record, place);
    refuse_messages(*turns, key, place);
    if (has_chosen_turn(record)) refuse_answers(*turns, key, place);
  }
  for (const std::string_view key : {"completion", "chosen"}) {
    if (const json* const turns = find_list(record, key)) refuse_messages(*turns, key, place);
  }
  if (const json* const prompt = find_list(record, "prompt")) {
    refuse_answers(*prompt, "prompt", place);
  }
}

}  // namespace dstrain::data
