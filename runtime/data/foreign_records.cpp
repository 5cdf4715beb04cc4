#include "runtime/data/foreign_records.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"
#include "runtime/base/printable.h"
#include "runtime/data/jq_command.h"
#include "runtime/data/turn_programs.h"
#include "runtime/data/unbuilt_keys.h"

namespace dstrain::data {
namespace {

using nlohmann::json;

/// For jq; "." if the record is read as it is; none: not known.
using Program = std::optional<std::string>;

bool has_text(const json& record, std::string_view key) {
  const auto field = record.find(key);
  return field != record.end() && field->is_string();
}

bool has_number(const json& record, std::string_view key) {
  const auto field = record.find(key);
  return field != record.end() && field->is_number();
}

bool has_list(const json& record, std::string_view key) {
  const auto field = record.find(key);
  return field != record.end() && field->is_array() && !field->empty();
}

/// The keys under which a question and its answer stand.
struct Pair {
  std::string_view question;
  std::string_view answer;
};

std::optional<Pair> find_pair(const json& record) {
  static constexpr std::array<Pair, 28> known{
      {{"instruction", "output"}, {"instruction", "response"},
       {"instruction", "chosen"}, {"prompt", "completion"},
       {"prompt", "response"},    {"prompt", "chosen"},
       {"question", "answer"},    {"question", "response"},
       {"question", "chosen"},    {"query", "response"},
       {"query", "answer"},       {"query", "chosen"},
       {"problem", "solution"},   {"input", "output"},
       {"input", "target"},       {"input", "chosen"},
       {"source", "target"},      {"src", "tgt"},
       {"inputs", "targets"},     {"prompt", "answer"},
       {"document", "summary"},   {"article", "highlights"},
       {"human", "bot"},          {"user", "assistant"},
       {"content", "summary"},    {"content", "answer"},
       {"content", "output"},     {"content", "target"}}};
  const auto* const found = std::ranges::find_if(known, [&](const Pair& pair) {
    // An answer that is a number is refused afterwards, with how to make it text.
    return has_text(record, pair.question) &&
           (has_text(record, pair.answer) || has_number(record, pair.answer));
  });
  return found == known.end() ? std::nullopt : std::optional(*found);
}

/// A text that may be missing, with something before and behind it.
constexpr std::string_view part_in_jq =
    "def part(a; z): . // \"\" | tostring | if . == \"\" or . == \"[]\" then \"\" else a + . + z "
    "end; ";

std::string part(std::string_view key, std::string_view before, std::string_view after) {
  return fmt::format("(.{} | part(\"{}\"; \"{}\"))", key, before, after);
}

constexpr std::string_view alpaca_begin = R"(### Instruction:\n)";
constexpr std::string_view alpaca_input = R"(\n\n### Input:\n)";
constexpr std::string_view alpaca_end = R"(\n\n### Response:\n)";

/// What a record must have.
std::string needed(std::string_view key) {
  return fmt::format(".{0} // error(\"{0} is missing\")", key);
}

/// A prompt that an earlier command made of a question, without what it put around it.
std::string plain_prompt(const json& prompt) {
  const auto& text = prompt.get_ref<const std::string&>();
  const bool alpaca =
      text.starts_with("### Instruction:\n") && text.ends_with("\n\n### Response:\n");
  if (alpaca) {
    return fmt::format("({} | ltrimstr(\"{}\") | rtrimstr(\"{}\") | split(\"{}\") | join(\"\\n\"))",
                       needed("prompt"), alpaca_begin, alpaca_end, alpaca_input);
  }
  return fmt::format("({}{})", needed("prompt"),
                     text.ends_with('\n') ? R"( | rtrimstr("\n"))" : "");
}

/// The parts that a command puts into the question under `key`, so that later records may have
/// them. Others than the usual three are put in where the first record has them, and else stay.
std::vector<std::string_view> parts_of(const json& record, std::string_view key) {
  std::vector<std::string_view> parts;
  for (const std::string_view part : question_parts) {
    const bool usual = part == "instruction" || part == "context" || part == "input";
    if (part != key && (usual || record.contains(part))) parts.push_back(part);
  }
  return parts;
}

/// A question with what belongs to it: its instruction and context before it, its input behind it.
/// `text` is the question itself in jq.
std::string question_in_jq(std::span<const std::string_view> parts,
                           std::string_view text,
                           std::string_view input) {
  std::string whole;
  std::string behind;
  for (const std::string_view key : parts) {
    if (key == "input") {
      behind = " + " + part(key, input, "");
    } else {
      whole += part(key, "", key == "instruction" ? R"(\n)" : R"(\n\n)") + " + ";
    }
  }
  return whole.append(text) + behind;
}

std::string without(std::string_view program, const std::vector<std::string>& keys) {
  return keys.empty() ? std::string(program)
                      : fmt::format("{} | del({})", program, fmt::join(keys, ", "));
}

std::string dotted(std::string_view key) {
  return fmt::format(".{}", key);
}

/// Whether something stands beside prompt and completion that belongs to the prompt.
bool has_parts(const json& record) {
  return std::ranges::any_of(question_parts, [&](std::string_view key) {
    const auto field = record.find(key);
    return field != record.end() && !holds_nothing(*field);
  });
}

/// Prompt and completion, or a conversation if there is a system message or earlier turns.
Program pair_program(const json& record, const Pair& pair) {
  const bool is_ours = pair.question == "prompt" && pair.answer == "completion";
  // Both would be the prompt.
  if (pair.question != "prompt" && !says_nothing(record.value("prompt", json()))) {
    return std::nullopt;
  }
  const std::string text = fmt::format("({})", needed(pair.question));
  const std::string_view system = system_key(record);
  std::vector<std::string> used{dotted(pair.question), dotted(pair.answer)};
  const std::vector<std::string_view> parts = parts_of(record, pair.question);
  for (const std::string_view key : parts) used.push_back(dotted(key));
  if (!system.empty() || record.contains("history")) {
    const auto turns = history_in_jq(record);
    if (!turns) return std::nullopt;
    const std::string_view key = system.empty() ? "system" : system;
    used.insert(used.end(), {dotted(key), ".history"});
    const std::string question =
        question_in_jq(parts, is_ours ? plain_prompt(record.at("prompt")) : text, R"(\n)");
    return without(fmt::format("{}. + {{messages: [{}{}{{role: \"user\", content: ({})}}, {{role: "
                               "\"assistant\", content: .{}}}]}}",
                               part_in_jq, system_in_jq(key), *turns, question, pair.answer),
                   used);
  }
  if (is_ours && !has_parts(record)) return ".";
  std::erase(used, ".prompt");
  std::erase(used, ".completion");
  if (is_ours) {
    return without(
        fmt::format("{}. + {{prompt: ({})}}", part_in_jq, question_in_jq(parts, text, R"(\n)")),
        used);
  }
  const bool alpaca =
      pair.question == "instruction" && (pair.answer != "response" || record.contains("input"));
  const std::string question = question_in_jq(parts, text, alpaca ? alpaca_input : R"(\n)");
  const std::string prompt =
      alpaca ? fmt::format("\"{}\" + {} + \"{}\"", alpaca_begin, question, alpaca_end)
             : question + R"( + "\n")";
  const std::string_view guard =
      pair.question == "prompt"
          ? ""
          : "if (.prompt // \"\") != \"\" then error(\"prompt would be lost\") else . end | ";
  return without(fmt::format("{}{}. + {{prompt: ({}), completion: .{}}}", part_in_jq, guard, prompt,
                             pair.answer),
                 used);
}

/// TRL's prompt with a completion or a chosen answer, as messages. The prompt's own answers are not
/// learned there, which their weight says.
Program message_pair_program(const json& record) {
  for (const std::string_view answer : {"completion", "chosen"}) {
    if (!has_list(record, answer)) continue;
    if (has_list(record, "prompt")) {
      return fmt::format(
          ". + {{messages: ((.prompt | map(.weight = 0)) + .{})}} | del(.prompt, .{})", answer,
          answer);
    }
    const json& first = record.at(std::string(answer)).front();
    if (!first.is_object()) continue;
    if (first.value("role", json()) == "assistant" && !has_text(record, "prompt")) continue;
    // A prompt that the messages repeat is no matter; another one stays, and is refused.
    return fmt::format(
        ". + {{messages: ((if .{0}[0].role == \"assistant\" then [{{role: \"user\", content: "
        ".prompt}}] else [] end) + .{0})}} | if .prompt as $p | any(.messages[]; .content == $p) "
        "then del(.prompt, .{0}) else del(.{0}) end",
        answer);
  }
  return std::nullopt;
}

/// Whether it is a text under another name: what else is in it says where that comes from.
bool is_document(const json& record) {
  static constexpr std::array<std::string_view, 22> others{
      "content",   "author", "category", "date",      "domain",  "ext",  "file", "hash",
      "hexsha",    "id",     "lang",     "language",  "license", "name", "path", "repo",
      "repo_name", "source", "tags",     "timestamp", "title",   "url"};
  return has_text(record, "content") && std::ranges::all_of(record.items(), [](const auto& item) {
           return !item.value().is_string() ||
                  std::ranges::find(others, item.key()) != others.end();
         });
}

/// Of a record with more than one of text, prompt with completion, and messages: what leaves one.
Program choice_program(const json& record) {
  const bool text = record.contains("text");
  if (has_text(record, "text") && has_text(record, "completion") && record.size() == 2) {
    return ". + {prompt: .text} | del(.text)";
  }
  const bool messages = has_list(record, "messages");
  const bool completion = record.contains("prompt") && record.contains("completion");
  std::vector<std::string> others;
  if (text && (messages || completion)) others.emplace_back(".text");
  for (const char* const key : {"prompt", "completion"}) {
    if (record.contains(key) && (messages || (text && !completion))) others.push_back(dotted(key));
  }
  if (others.empty()) return std::nullopt;
  return fmt::format("del({})", fmt::join(others, ", "));
}

Program program_for(const json& record);

/// Of a document that holds all records in one list, LMFlow's instances or SQuAD's data, and says
/// nothing else of them; null: it is none.
const json* list_of_records(const json& record) {
  static constexpr std::array<std::string_view, 4> lists{"instances", "data", "examples", "train"};
  static constexpr std::array<std::string_view, 7> others{"type", "version", "name", "description",
                                                          "info", "license", "split"};
  const json* found = nullptr;
  for (const auto& [key, value] : record.items()) {
    if (std::ranges::find(others, key) != others.end()) continue;
    const bool holds = value.is_array() && !value.empty() && value.front().is_object() &&
                       std::ranges::find(lists, key) != lists.end();
    if (!holds || found != nullptr) return nullptr;
    found = &value;
  }
  return found;
}

Program list_program(const json& record) {
  const json* const list = list_of_records(record);
  if (list == nullptr) return std::nullopt;
  const auto is_list = [&](const auto& item) {
    return &item.value() == list;
  };
  std::string key;
  for (const auto& item : record.items()) key = is_list(item) ? item.key() : key;
  // LMFlow puts nothing between the two.
  const Program each = record.value("type", json()) == "text2text"
                           ? ". + {prompt: .input, completion: .output} | del(.input, .output)"
                           : program_for(list->front());
  if (!each) return std::nullopt;
  return fmt::format(".{}[]", key) + (*each == "." ? "" : " | " + *each);
}

/// Of a table by columns, {"prompt": ["a", "b"], "completion": ["c", "d"]}: its rows.
Program columns_program(const json& table) {
  json row = json::object();
  for (const auto& [key, value] : table.items()) {
    const bool fits = value.is_array() && !value.empty() && value.front().is_string() &&
                      value.size() == table.front().size();
    if (!fits) return std::nullopt;
    row[key] = value.front();
  }
  const Program each = program_for(row);
  if (!each) return std::nullopt;
  return fmt::format(". as $t | range(.[\"{}\"] | length) as $i | $t | map_values(.[$i])",
                     table.items().begin().key()) +
         (*each == "." ? "" : " | " + *each);
}

Program program_for(const json& record) {
  if (!record.is_object() || record.empty()) return std::nullopt;
  if (Program choice = choice_program(record)) return choice;
  if (has_text(record, "text")) return ".";
  if (Program pair = message_pair_program(record)) return pair;
  if (Program turns = turns_program(record)) return turns;
  if (has_text(record, "instruction") && has_list(record, "instances")) {  // Self-Instruct
    const Program each = pair_program({{"instruction", ""}, {"input", ""}, {"output", ""}},
                                      {"instruction", "output"});
    return "(del(.instances) + .instances[]) | " + each.value();
  }
  if (const auto pair = find_pair(record)) return pair_program(record, *pair);
  if (has_text(record, "chosen")) return ". + {text: .chosen} | del(.chosen)";
  if (is_document(record)) return ". + {text: .content} | del(.content)";
  if (Program rows = columns_program(record)) return rows;
  return list_program(record);
}

/// For a list of turns that stands alone; none: it is none.
Program turns_of(const json& list) {
  if (!list.is_array() || list.empty() || !list.front().is_object()) return std::nullopt;
  const Program program = turns_program(json{{"messages", list}});
  if (!program) return std::nullopt;
  return *program == "." ? "{messages: .}" : "{messages: .} | " + *program;
}

/// The object or array that `text` begins with; none: it is not whole, or not JSON.
std::optional<json> first_value(std::string_view text) {
  constexpr std::size_t looked_at_max = std::size_t{64} << 20;
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < std::min(text.size(), looked_at_max); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth > 0) continue;
    try {
      return parse_python_json(text.substr(0, at + 1), [](std::string_view whole) {
        return json::parse(whole.begin(), whole.end());
      });
    } catch (const json::exception&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::string roles_of(std::span<const Message> messages) {
  std::vector<std::string> roles;
  for (const Message& message : messages) {
    std::string role = printable(message.role);
    if (std::ranges::find(roles, role) == roles.end()) roles.push_back(std::move(role));
  }
  return fmt::format("{}", fmt::join(roles, ", "));
}

/// What roles that nobody else has may stand for: who speaks first asks, and the next one answers.
std::vector<RoleName> guess_roles(std::span<const Message> messages) {
  std::vector<RoleName> guessed;
  const auto has = [&](std::string_view role) {
    return std::ranges::any_of(
               messages,
               [&](const Message& message) { return role_in_ours(message.role) == role; }) ||
           std::ranges::find(guessed, role, &RoleName::role) != guessed.end();
  };
  for (const Message& message : messages) {
    const bool known = is_known_role(message.role) || is_foreign_role(message.role) ||
                       std::ranges::find(guessed, message.role, &RoleName::name) != guessed.end();
    if (known) continue;
    guessed.push_back({message.role, has("user") && !has("assistant") ? "assistant" : "user"});
  }
  return guessed;
}

}  // namespace

std::string record_conversion(const json& record, const std::string& file) {
  const Program program = program_for(record);
  return !program || *program == "." ? "" : ": " + jq_command(*program, file);
}

std::string document_conversion(std::string_view document, const std::string& file) {
  const bool is_array = document.starts_with('[');
  std::string_view text = document.substr(is_array ? 1 : 0);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (is_array && text.starts_with('"')) return jq_command(".[] | {text: .}", file);
  if (is_array && text.starts_with('[')) {
    const std::optional<json> inner = first_value(text);
    const Program turns = inner ? turns_of(*inner) : std::nullopt;
    return jq_command(turns ? ".[] | " + *turns : ".[]", file);
  }
  const std::optional<json> first = text.starts_with('{') ? first_value(text) : std::nullopt;
  Program program;
  if (first) {
    refuse_unkept(*first, fmt::format("{}: the first record", file));
    program = program_for(*first);
  }
  if (is_array && first && !program) {
    // One conversation.
    if (const Program turns = turns_of(json::array({*first}))) return jq_command(*turns, file);
  }
  const bool as_it_is = !program || *program == ".";
  if (!is_array) return jq_command(as_it_is ? "." : *program, file);
  return jq_command(as_it_is ? ".[]" : ".[] | " + *program, file);
}

bool holds_object(std::string_view text) {
  const std::optional<json> first = text.starts_with('{') ? first_value(text) : std::nullopt;
  return first && first->is_object() && !first->empty();
}

bool holds_records(std::string_view text) {
  const bool is_array = text.starts_with('[');
  if (is_array) {
    text.remove_prefix(1);
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
  if (!text.starts_with('{') && !text.starts_with('[')) return false;
  const std::optional<json> first = first_value(text);
  if (!first) return false;
  if (first->is_array()) return is_array && turns_of(*first).has_value();
  return program_for(*first).has_value() ||
         (is_array && turns_of(json::array({*first})).has_value());
}

bool has_answers(const json& record) {
  const Program program = record.contains("text") ? std::nullopt : program_for(record);
  return program && (*program == "." || program->find("{messages: ") != std::string::npos ||
                     program->find("completion: ") != std::string::npos);
}

void refuse_unkept(const json& record, const std::string& place) {
  if (!program_for(record) || record.contains("text")) return;
  refuse_record_keys(record, place);
  refuse_judgement(record, place);
  refuse_turns(record, place);
  if (const json* const list = list_of_records(record)) refuse_unkept(list->front(), place);
}

std::string explain_roles(std::span<const Message> messages, const std::string& file) {
  const bool ours = std::ranges::all_of(
      messages, [](const Message& message) { return is_known_role(message.role); });
  if (ours) return {};
  const std::vector<RoleName> guessed = guess_roles(messages);
  return fmt::format("the roles are {}, and those known are system, user and assistant{}: {}",
                     roles_of(messages),
                     guessed.empty() ? "" : "; check that the command gives each the right one",
                     jq_command("(.messages[].role) |= (" + rename_in_jq(guessed) + ")", file));
}

}  // namespace dstrain::data
