#include "runtime/data/foreign_records.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"
#include "runtime/base/printable.h"
#include "runtime/base/shell_word.h"
#include "runtime/data/jq_command.h"
#include "runtime/data/json_values.h"
#include "runtime/data/record_holders.h"
#include "runtime/data/turn_programs.h"
#include "runtime/data/unbuilt_keys.h"

namespace dstrain::data {
namespace {

using nlohmann::json;

/// A program for jq; "." if the record is read unchanged; none: unknown.
using Program = std::optional<std::string>;

/// Whether a value can become a text in only one way.
bool is_word(const json& value) {
  return value.is_string() || value.is_number() || value.is_boolean();
}

bool has_word(const json& record, std::string_view key) {
  const auto field = record.find(key);
  return field != record.end() && is_word(*field);
}

/// Whether a value holds several answers, of which the first is taken: a list of texts, objects of
/// them in SQuAD and TriviaQA, a list of such objects. Lists of turns do not count.
bool holds_answers(const json& value) {
  if (value.is_array()) {
    return std::ranges::all_of(value, [](const json& one) {
      return one.is_string() || (one.is_object() && holds_answers(one));
    });
  }
  if (!value.is_object() || value.contains("role") || value.contains("from")) return false;
  const auto holds = [&](std::string_view key) {
    const auto field = value.find(key);
    return field != value.end() &&
           (field->is_string() || (field->is_array() && holds_answers(*field)));
  };
  return holds("text") || holds("value");
}

bool has_answers_in(const json& record, std::string_view key) {
  const auto field = record.find(key);
  return field != record.end() && holds_answers(*field);
}

/// The keys of a question and its answer.
struct Pair {
  std::string_view question;
  std::string_view answer;
};

std::optional<Pair> find_pair(const json& record) {
  static constexpr std::array<Pair, 30> known{
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
       {"content", "output"},     {"content", "target"},
       {"question", "answers"},   {"query", "answers"}}};
  const auto* found = std::ranges::find_if(known, [&](const Pair& pair) {
    return has_text(record, pair.question) && has_word(record, pair.answer);
  });
  if (found != known.end()) return *found;
  found = std::ranges::find_if(known, [&](const Pair& pair) {
    return has_text(record, pair.question) && has_answers_in(record, pair.answer);
  });
  return found == known.end() ? std::nullopt : std::optional(*found);
}

/// Defines in jq: an answer as text, and an optional text with something before and after it. jq
/// keeps 15 digits of a number.
constexpr std::string_view part_in_jq =
    "def word: if type == \"string\" or type == \"boolean\" or (type == \"number\" and (tostring | "
    "length) < 16) then tostring else error(\"\\(.) is not text; write it as one, in quotes\") "
    "end; "
    "def part(a; z): . // \"\" | if type == \"number\" then word else tostring end | if . == \"\" "
    "or "
    ". == \"[]\" then \"\" else a + . + z end; ";

/// Defines in jq: the first of several answers; null if there is none.
constexpr std::string_view one_in_jq =
    "def one: if type == \"array\" then .[0] | one elif type == \"object\" then .text // .value | "
    "one "
    "else . end; ";

std::string part(std::string_view key, std::string_view before, std::string_view after) {
  return fmt::format("(.{} | part(\"{}\"; \"{}\"))", key, before, after);
}

constexpr std::string_view alpaca_begin = R"(### Instruction:\n)";
constexpr std::string_view alpaca_input = R"(\n\n### Input:\n)";
constexpr std::string_view alpaca_end = R"(\n\n### Response:\n)";

/// Returns the jq program for a key that a record must have.
std::string needed(std::string_view key) {
  return fmt::format(".{0} // error(\"{0} is missing\")", key);
}

/// Returns a prompt without the text that an earlier command put around Alpaca's question.
std::string plain_prompt(const json& prompt) {
  const auto& text = prompt.get_ref<const std::string&>();
  const bool alpaca =
      text.starts_with("### Instruction:\n") && text.ends_with("\n\n### Response:\n");
  if (alpaca) {
    return fmt::format("({} | ltrimstr(\"{}\") | rtrimstr(\"{}\") | split(\"{}\") | join(\"\\n\"))",
                       needed("prompt"), alpaca_begin, alpaca_end, alpaca_input);
  }
  return fmt::format("({})", needed("prompt"));
}

/// Returns the parts that a command puts into the question under `key`. The usual three are always
/// included, because later records may have them; others are included if the first record has them,
/// and otherwise stay.
std::vector<std::string_view> parts_of(const json& record, std::string_view key) {
  std::vector<std::string_view> parts;
  for (const std::string_view part : question_parts) {
    const bool usual = part == "instruction" || part == "context" || part == "input";
    if (part != key && (usual || record.contains(part))) parts.push_back(part);
  }
  return parts;
}

/// Returns, in jq, a question with its parts: its instruction and context before it, its input
/// after it. `text` is the question itself in jq.
std::string question_in_jq(std::span<const std::string_view> parts,
                           std::string_view text,
                           std::string_view input) {
  std::string whole;
  std::string behind;
  for (const std::string_view key : parts) {
    if (key == "input") {
      behind = part(key, input, "");
    } else {
      whole += part(key, "", key == "instruction" ? R"(\n)" : R"(\n\n)") + " + ";
    }
  }
  whole += text;
  // A line feed at the end of the question is not doubled.
  return behind.empty() ? whole
                        : fmt::format(
                              "({} as $i | {} | if $i == \"\" then . else rtrimstr(\"\\n\") + "
                              "$i end)",
                              behind, whole);
}

std::string without(std::string_view program, const std::vector<std::string>& keys) {
  return keys.empty() ? std::string(program)
                      : fmt::format("{} | del({})", program, fmt::join(keys, ", "));
}

std::string dotted(std::string_view key) {
  return fmt::format(".{}", key);
}

/// Whether there are keys beside prompt and completion that belong to the prompt.
bool has_parts(const json& record) {
  return std::ranges::any_of(question_parts, [&](std::string_view key) {
    const auto field = record.find(key);
    return field != record.end() && !holds_nothing(*field);
  });
}

/// Makes prompt and completion, or a conversation if there is a system message or earlier turns.
Program pair_program(const json& record, const Pair& pair) {
  const bool is_ours = pair.question == "prompt" && pair.answer == "completion";
  // Both would become the prompt.
  if (pair.question != "prompt" && !says_nothing(record.value("prompt", json()))) {
    return std::nullopt;
  }
  const std::string text = fmt::format("({})", needed(pair.question));
  const std::string_view system = system_key(record);
  // The first of several answers is used, and all are kept.
  const bool several = !has_word(record, pair.answer);
  const std::string answer = fmt::format("(.{}{} | word)", pair.answer, several ? " | one" : "");
  const std::string begin = several ? fmt::format("{}{}select((.{} | one) != null) | ", part_in_jq,
                                                  one_in_jq, pair.answer)
                                    : std::string(part_in_jq);
  std::vector<std::string> used{dotted(pair.question)};
  if (!several) used.push_back(dotted(pair.answer));
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
                               "\"assistant\", content: {}}}]}}",
                               begin, system_in_jq(key), *turns, question, answer),
                   used);
  }
  if (is_ours && !has_text(record, "completion")) {
    return fmt::format("{}. + {{completion: {}}}", begin, answer);
  }
  if (is_ours && !has_parts(record)) return ".";
  std::erase(used, ".prompt");
  std::erase(used, ".completion");
  if (is_ours) {
    return without(
        fmt::format("{}. + {{prompt: ({})}}", begin, question_in_jq(parts, text, R"(\n)")), used);
  }
  const bool alpaca =
      pair.question == "instruction" && (pair.answer != "response" || record.contains("input"));
  const std::string question = question_in_jq(parts, text, alpaca ? alpaca_input : R"(\n)");
  const std::string prompt =
      alpaca ? fmt::format("\"{}\" + {} + \"{}\"", alpaca_begin, question, alpaca_end)
             : fmt::format("({} | rtrimstr(\"\\n\")) + \"\\n\"", question);
  const std::string_view guard =
      pair.question == "prompt"
          ? ""
          : "if (.prompt // \"\") != \"\" then error(\"prompt would be lost\") else . end | ";
  return without(
      fmt::format("{}{}. + {{prompt: ({}), completion: {}}}", begin, guard, prompt, answer), used);
}

/// Converts TRL's prompt with a completion or a chosen answer to messages. The prompt's own answers
/// are not trained on there, so they get a weight of 0.
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
    // A prompt that the messages repeat does not matter; another one stays, and is refused.
    return fmt::format(
        ". + {{messages: ((if .{0}[0].role == \"assistant\" then [{{role: \"user\", content: "
        ".prompt}}] else [] end) + .{0})}} | if .prompt as $p | any(.messages[]; .content == $p) "
        "then del(.prompt, .{0}) else del(.{0}) end",
        answer);
  }
  return std::nullopt;
}

/// Whether it is a text under another key, with other keys that describe its source.
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

/// Returns a program that leaves one of text, prompt with completion, and messages.
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

Program plain_program(const json& record) {
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
  return std::nullopt;
}

Program program_for(const json& record) {
  if (!record.is_object() || record.empty()) return std::nullopt;
  if (Program program = plain_program(record)) return program;
  return holder_program(record, program_for, plain_program);
}

constexpr std::string_view no_preferences =
    "preference training (DPO) is not built, and the command makes records that imitate chosen "
    "alone";

bool keeps_chosen(std::string_view program) {
  return program.find(".chosen") != std::string_view::npos;
}

/// Converts a list of turns without a record around it; none if it is not such a list.
Program turns_of(const json& list) {
  if (!list.is_array() || list.empty() || !list.front().is_object()) return std::nullopt;
  const Program program = turns_program(json{{"messages", list}});
  if (!program) return std::nullopt;
  return *program == "." ? "{messages: .}" : "{messages: .} | " + *program;
}

std::string roles_of(std::span<const Message> messages) {
  std::vector<std::string> roles;
  for (const Message& message : messages) {
    std::string role = printable(message.role);
    if (std::ranges::find(roles, role) == roles.end()) roles.push_back(std::move(role));
  }
  return fmt::format("{}", fmt::join(roles, ", "));
}

/// Guesses unusual role names: the first speaker asks, and the next one answers.
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

bool imitates_chosen(const json& record) {
  const Program program = program_for(record);
  return program && keeps_chosen(*program);
}

std::string_view type_in_jq(const json& value) {
  return is_word(value) ? word_type : value.type_name();
}

std::vector<FormKey> form_of(const json& record) {
  const auto keys = [&](std::initializer_list<std::string_view> names) {
    std::vector<FormKey> form;
    for (const std::string_view name : names) {
      if (record.contains(name)) form.push_back({name, type_in_jq(*record.find(name))});
    }
    return form;
  };
  if (has_list(record, "messages")) return keys({"messages"});
  if (has_text(record, "text") && !record.contains("completion")) return keys({"text"});
  for (const std::string_view answer : {"completion", "chosen"}) {
    const bool turns = has_list(record, answer) && record.find(answer)->front().is_object();
    if (turns) return keys({"prompt", answer});
  }
  if (const std::string_view key = turns_key(record); !key.empty()) return keys({key});
  if (has_list(record, "instances")) return keys({"instruction", "instances"});
  if (const auto pair = find_pair(record)) return keys({pair->question, pair->answer});
  if (has_text(record, "text")) return keys({"text", "completion"});
  if (has_text(record, "chosen")) return keys({"chosen"});
  return is_document(record) ? keys({"content"}) : std::vector<FormKey>{};
}

bool has_form(const json& record, const std::vector<FormKey>& form) {
  return record.is_object() && std::ranges::all_of(form, [&](const FormKey& part) {
           const auto field = record.find(part.key);
           return field != record.end() && type_in_jq(*field) == part.type;
         });
}

std::string record_conversion(const json& record, const std::string& file) {
  const Program program = program_for(record);
  if (!program || *program == ".") return "";
  return fmt::format("{}{}{}", keeps_chosen(*program) ? "; " + std::string(no_preferences) : "",
                     program->find(one_in_jq) == std::string::npos
                         ? ""
                         : " (the first of several answers becomes the completion, and records "
                           "without one are left out)",
                     command_below(jq_command(*program, file)));
}

std::string conversion_pattern(const json& record, const std::string& file) {
  if (record.contains("role") && record.contains("content")) {
    return "; a line is a conversation, not a message; if the file is one conversation" +
           command_below(
               whole_or_none(reading("jq -cn '{messages: [inputs]}'", file), converted_name(file)));
  }
  if (record.empty()) return {};
  return "; type which keys they are in place of QUESTION and ANSWER" +
         command_below(jq_command(fmt::format(". + {{prompt: (({}) + \"\\n\"), completion: ({})}}",
                                              needed("QUESTION"), needed("ANSWER")),
                                  file));
}

std::string_view number_answer(const json& record) {
  const auto pair = find_pair(record);
  return pair && record.find(pair->answer)->is_number() ? pair->answer : std::string_view{};
}

namespace {

/// Whether the elements of an array have other forms than its first one, with which `text` begins.
bool is_mixed(std::string_view text) {
  std::vector<FormKey> form;
  for (std::string_view rest = text; rest.starts_with('{');) {
    const std::size_t size = value_size(rest);
    const std::optional<json> record = parse_value(rest.substr(0, size));
    if (size == 0 || !record) return false;
    if (form.empty()) form = form_of(*record);
    if (!has_form(*record, form)) return true;
    rest = next_value(rest.substr(size));
  }
  return false;
}

}  // namespace

std::string document_conversion(std::string_view document, const std::string& file) {
  const bool is_array = document.starts_with('[');
  const std::string_view text = next_value(document.substr(is_array ? 1 : 0));
  const auto below = [&](std::string_view program) {
    return command_below(jq_command(program, file));
  };
  if (is_array && text.starts_with('"')) return below(".[] | {text: .}");
  if (is_array && text.starts_with('[')) {
    const std::optional<json> inner = first_value(text);
    const Program turns = inner ? turns_of(*inner) : std::nullopt;
    return below(turns ? ".[] | " + *turns : ".[]");
  }
  const std::optional<json> first = text.starts_with('{') ? first_value(text) : std::nullopt;
  Program program;
  if (first) {
    refuse_unkept(*first, fmt::format("{}: the first record", file));
    program = program_for(*first);
  }
  if (is_array && first && !program) {
    // It is one conversation.
    if (const Program turns = turns_of(json::array({*first}))) return below(*turns);
  }
  // Their lines are refused with the command that splits them.
  if (is_array && first && program && is_mixed(text)) program = ".";
  const bool numbers = first && program && *program == "." && first->contains("completion");
  if (numbers) program = fmt::format("{}.completion |= word", part_in_jq);
  const bool as_it_is = !program || *program == ".";
  const std::string note =
      program && keeps_chosen(*program) ? "; " + std::string(no_preferences) : "";
  if (!is_array) return note + below(as_it_is ? "." : *program);
  return note + below(as_it_is ? ".[]" : ".[] | " + *program);
}

bool holds_object(std::string_view text) {
  const std::optional<json> first = text.starts_with('{') ? first_value(text) : std::nullopt;
  return first && first->is_object() && !first->empty();
}

bool holds_records(std::string_view text) {
  const bool is_array = text.starts_with('[');
  if (is_array) text = next_value(text.substr(1));
  if (!text.starts_with('{') && !text.starts_with('[')) return false;
  const std::optional<json> first = first_value(text);
  if (!first || !goes_on_with_records(text)) return false;
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
  return fmt::format(
      "the roles are {}, and those known are system, user and assistant{}{}", roles_of(messages),
      guessed.empty() ? "" : "; check that the command gives each the right one",
      command_below(jq_command("(.messages[].role) |= (" + rename_in_jq(guessed) + ")", file)));
}

}  // namespace dstrain::data
