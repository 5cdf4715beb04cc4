#include "runtime/data/foreign_records.h"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/printable.h"

namespace dstrain::data {
namespace {

using nlohmann::json;

/// What others call the roles of user and assistant.
constexpr std::array<std::string_view, 2> users{"human", "prompter"};
constexpr std::array<std::string_view, 6> assistants{"gpt",     "model", "bot",
                                                     "chatgpt", "ai",    "bard"};

/// What makes our names of others' in jq.
std::string rename_in_jq() {
  std::string pairs;
  for (const std::string_view name : users) pairs += fmt::format("{}: \"user\", ", name);
  for (const std::string_view name : assistants) pairs += fmt::format("{}: \"assistant\", ", name);
  return "({" + pairs.substr(0, pairs.size() - 2) + "}[.] // .)";
}

struct ForeignRecord {
  std::array<std::string_view, 2> keys;  ///< that they have; the second may be empty
  std::string_view program;              ///< for jq; empty: the second key answers the first
};

constexpr std::string_view alpaca =
    "{prompt: (\"### Instruction:\\n\" + .instruction + (if (.input // \"\") == \"\" then \"\" "
    "else "
    "\"\\n\\n### Input:\\n\" + .input end) + \"\\n\\n### Response:\\n\"), completion: .output}";
constexpr std::string_view dolly =
    "{prompt: ((if (.context // \"\") == \"\" then \"\" else .context + \"\\n\\n\" end) + "
    ".instruction + \"\\n\"), completion: .response}";

constexpr std::array<ForeignRecord, 12> known{
    {{{"instruction", "output"}, alpaca},
     {{"instruction", "response"}, dolly},
     {{"chosen", "rejected"},
      "if (.chosen | type) == \"array\" then {messages: .chosen} elif .prompt then {prompt, "
      "completion: .chosen} else {text: .chosen} end"},
     {{"prompt", "response"}, ""},
     {{"question", "answer"}, ""},
     {{"query", "response"}, ""},
     {{"problem", "solution"}, ""},
     {{"input", "output"}, ""},
     {{"input", "target"}, ""},
     {{"source", "target"}, ""},
     {{"conversation", ""},
      "{messages: [.conversation[] | {role: \"user\", content: .human}, {role: \"assistant\", "
      "content: .assistant}]}"},
     {{"content", ""}, "{text: .content}"}}};

using HasKey = std::function<bool(std::string_view)>;

std::string jq(std::string_view program, std::string_view from) {
  return fmt::format("jq -c '{}' {} > out.jsonl", program, from);
}

/// For jq; empty: none is known. `has_from`: its turns have `from` and `value`.
std::string program_for(const HasKey& has, bool has_from) {
  for (const std::string_view key : {"conversations", "messages"}) {
    if (!has(key)) continue;
    if (!has_from) return fmt::format("{{messages: .{}}}", key);
    return fmt::format("{{messages: [.{}[] | {{role: (.from | {}), content: .value}}]}}", key,
                       rename_in_jq());
  }
  for (const ForeignRecord& record : known) {
    const auto& [first, second] = record.keys;
    if (!has(first) || (!second.empty() && !has(second))) continue;
    if (!record.program.empty()) return std::string(record.program);
    return fmt::format("{{prompt: (.{} + \"\\n\"), completion: .{}}}", first, second);
  }
  return {};
}

bool has_role(std::span<const Message> messages, std::span<const std::string_view> names) {
  return std::ranges::any_of(messages, [&](const Message& message) {
    return std::ranges::find(names, message.role) != names.end();
  });
}

std::string roles_of(std::span<const Message> messages) {
  std::vector<std::string> roles;
  for (const Message& message : messages) {
    std::string role = printable(message.role);
    if (std::ranges::find(roles, role) == roles.end()) roles.push_back(std::move(role));
  }
  return fmt::format("{}", fmt::join(roles, ", "));
}

std::string renaming(std::span<const Message> messages) {
  return fmt::format("the roles are {}, and those known are system, user and assistant: {}",
                     roles_of(messages), jq("(.messages[].role) |= " + rename_in_jq(), "in.jsonl"));
}

}  // namespace

std::string record_conversion(const json& record) {
  bool has_from = false;
  for (const char* const key : {"conversations", "messages"}) {
    const auto turns = record.find(key);
    has_from |= turns != record.end() && turns->is_array() && !turns->empty() &&
                turns->front().is_object() && turns->front().contains("from");
  }
  const std::string program =
      program_for([&](std::string_view key) { return record.contains(key); }, has_from);
  return program.empty() ? "" : ": " + jq(program, "in.jsonl");
}

std::string document_conversion(std::string_view begin) {
  const auto has = [&](std::string_view key) {
    return begin.find(fmt::format("\"{}\":", key)) != std::string_view::npos;
  };
  const std::string program = program_for(has, has("from"));
  return program.empty() ? "" : jq(".[] | " + program, "in.json");
}

std::string explain_roles(std::span<const Message> messages) {
  constexpr std::array<std::string_view, 1> ours{"assistant"};
  return has_role(messages, ours) ? "" : explain_refused_roles(messages);
}

std::string explain_refused_roles(std::span<const Message> messages) {
  return has_role(messages, users) || has_role(messages, assistants) ? renaming(messages) : "";
}

}  // namespace dstrain::data
