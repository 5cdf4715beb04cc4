#include "runtime/data/record_layout.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/data/turns.h"

namespace dstrain::data {
namespace {

using Json = nlohmann::ordered_json;
using Keys = std::span<const std::string_view>;

constexpr std::array<std::string_view, 3> turn_keys{"messages", "conversations", "conversation"};
constexpr std::array<std::string_view, 3> system_keys{"system", "system_prompt",
                                                      "meta_instruction"};
/// Of those that a record has, the first with a text is the question; always the instruction.
constexpr std::array<std::string_view, 6> question_keys{"instruction", "question", "query",
                                                        "problem",     "prompt",   "input"};
constexpr std::array<std::string_view, 5> answer_keys{"output", "response", "answer", "solution",
                                                      "completion"};
/// Keys that change what the model sees. A layout reads them, or refuses them.
constexpr std::array<std::string_view, 28> seen_keys{
    "messages",      "conversations",    "conversation",
    "prompt",        "instruction",      "question",
    "query",         "problem",          "input",
    "context",       "contexts",         "passage",
    "background",    "document",         "documents",
    "choices",       "options",          "system",
    "system_prompt", "meta_instruction", "history",
    "thinking",      "reasoning",        "reasoning_content",
    "tools",         "functions",        "chat_template_kwargs",
    "completion"};

constexpr std::string_view known_layouts =
    "known are {\"text\"} (--text_column names another key), {\"prompt\", \"completion\"}, "
    "{\"messages\"}, {\"conversations\"}, {\"instruction\", \"input\", \"output\"} and "
    "{\"question\", \"answer\"}";

bool says_something(const Json& object, std::string_view key) {
  const Json* const value = find_value(object, key);
  return value != nullptr && !says_nothing(*value);
}

/// Returns those of `keys` whose value is not null.
std::vector<std::string_view> present(const Json& object, Keys keys) {
  std::vector<std::string_view> found;
  std::ranges::copy_if(keys, std::back_inserter(found),
                       [&](std::string_view key) { return find_value(object, key) != nullptr; });
  return found;
}

/// Returns the first of `keys` whose value says something, else the first one.
std::string_view first_full(const Json& object, const std::vector<std::string_view>& keys) {
  const auto full =
      std::ranges::find_if(keys, [&](std::string_view key) { return says_something(object, key); });
  return full == keys.end() ? keys.front() : *full;
}

/// The keys of a question and its answer.
struct Pair {
  std::string_view question;
  std::string_view answer;
};

std::optional<Pair> find_pair(const Json& object) {
  const auto questions = present(object, question_keys);
  const auto answers = present(object, answer_keys);
  if (questions.empty() || answers.empty()) return std::nullopt;
  const bool instructs = questions.front() == "instruction";
  return Pair{instructs ? questions.front() : first_full(object, questions),
              first_full(object, answers)};
}

bool has_completion(const Json& object) {
  return find_value(object, "prompt") != nullptr && find_value(object, "completion") != nullptr;
}

/// Returns a question with its context before it and its input after it.
std::string joined(const std::string& context,
                   const std::string& question,
                   std::string_view between,
                   const std::string& input) {
  std::string text = context.empty() ? question : context + "\n\n" + question;
  if (input.empty()) return text;
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty() && between == "\n") return input;
  return text.append(between).append(input);
}

/// Whether a text is a part of what the model sees.
bool has_text(const Record& record, const std::string& text) {
  const auto holds = [&](const std::string& whole) {
    return whole.find(text) != std::string::npos;
  };
  return holds(record.text) || holds(record.completion) ||
         std::ranges::any_of(record.conversation.messages, [&](const Json& message) {
           const Json* const content = find_value(message, "content");
           return content != nullptr && content->is_string() &&
                  holds(content->get_ref<const std::string&>());
         });
}

/// Reads one object, and remembers which of its keys were used.
class LayoutReader {
 public:
  LayoutReader(Json& object, const RecordOptions& options, const std::string& place)
      : object_(object), options_(options), place_(place) {}

  Record read() {
    refuse_preferences();
    const auto turns = present(object_, turn_keys);
    const std::optional<Pair> pair = find_pair(object_);
    if (find_value(object_, "text") != nullptr) {
      const std::string other =
          !turns.empty() ? std::string(turns.front())
          : says_something(object_, "prompt") || says_something(object_, "completion")
              ? "prompt or completion"
          : pair ? fmt::format("{} with {}", pair->question, pair->answer)
                 : "";
      if (other.empty()) return {.text = text_under(object_, "text", place_)};
      fail(ErrorCode::input,
           "{}: holds both text and {}; --text_column text takes the text, or leave one out",
           place_, other);
    }
    if (turns.empty() && !has_completion(object_) && !pair) refuse_unknown();
    refuse_media(object_, place_);
    refuse_judgement();
    if (!turns.empty()) return read_turns(turns);
    if (has_completion(object_)) return read_completion();
    return read_pair(*pair);
  }

 private:
  /// Takes a value out of the object, and remembers its key.
  Json use(std::string_view key) {
    const auto field = object_.find(key);
    if (field == object_.end()) return {};
    if (!says_nothing(*field)) used_.push_back(key);
    return std::exchange(*field, Json());
  }

  std::string use_text(std::string_view key) {
    Json value = use(key);
    if (value.is_null() || (!value.is_string() && says_nothing(value))) return {};
    if (!value.is_string()) {
      fail(ErrorCode::input, "{}: {} is {}, not a string", place_, key, value.type_name());
    }
    return value.get<std::string>();
  }

  Record read_turns(const std::vector<std::string_view>& keys) {
    const std::string_view key = first_full(object_, keys);
    Json value = use(key);
    std::optional<Json> list = list_in(value);
    if (!list) {
      fail(ErrorCode::input, "{}: {} is {}, not a list of messages", place_, key,
           value.type_name());
    }
    Turns turns(options_, place_);
    turns.add_list(*std::move(list), key);
    return conversation(turns);
  }

  /// TRL's prompts and completions, of texts or messages.
  Record read_completion() {
    Json prompt = use("prompt");
    Json completion = use("completion");
    if (prompt.is_string() && completion.is_string()) {
      Record record{.kind = RecordKind::completion,
                    .text = prompt.get<std::string>(),
                    .completion = completion.get<std::string>()};
      refuse_unused(record);
      return record;
    }
    Turns turns(options_, place_);
    turns.add_any(std::move(prompt), "prompt", "user", false);
    turns.add_any(std::move(completion), "completion", "assistant");
    return conversation(turns);
  }

  Record read_pair(const Pair& pair) {
    refuse_second_answer(pair.answer);
    const std::string question = use_text(pair.question);
    const std::string context = use_text("context");
    const std::string input = pair.question == "input" ? "" : use_text("input");
    const Json& value = object_.at(std::string(pair.answer));
    if (!value.is_string()) {
      fail(ErrorCode::input, "{}: {} is {}, not a string", place_, pair.answer, value.type_name());
    }
    const std::string answer = use_text(pair.answer);
    const bool needs_template =
        says_something(object_, "history") || says_something(object_, "tools") ||
        std::ranges::any_of(system_keys,
                            [&](std::string_view key) { return says_something(object_, key); });
    // Few templates read documents, and those of a question are a part of it.
    if (says_something(object_, "documents")) refuse_ignored("documents");
    if (options_.has_chat_template || needs_template) {
      Turns turns(options_, place_);
      add_history(turns);
      turns.add("user", joined(context, question, "\n", input));
      turns.add("assistant", answer);
      return conversation(turns);
    }
    // Alpaca's prompt, in its two forms without the sentence before them.
    const bool alpaca =
        pair.question == "instruction" && (pair.answer != "response" || object_.contains("input"));
    Record record{.kind = RecordKind::completion, .completion = answer};
    if (alpaca) {
      record.text = "### Instruction:\n" + joined(context, question, "\n\n### Input:\n", input) +
                    "\n\n### Response:\n";
    } else {
      record.text = joined(context, question, "\n", input);
      if (!record.text.ends_with('\n')) record.text += '\n';
    }
    refuse_unused(record);
    return record;
  }

  /// Alpaca's earlier questions and answers.
  void add_history(Turns& turns) {
    const Json history = use("history");
    if (says_nothing(history)) return;
    const bool pairs =
        history.is_array() && std::ranges::all_of(history, [](const Json& turn) {
          return turn.is_array() && turn.size() == 2 && turn[0].is_string() && turn[1].is_string();
        });
    if (!pairs) {
      fail(ErrorCode::input, "{}: history is not a list of questions with their answers", place_);
    }
    for (const Json& turn : history) {
      turns.add("user", turn[0].get<std::string>());
      turns.add("assistant", turn[1].get<std::string>());
    }
  }

  /// Adds what stands beside the turns.
  Record conversation(Turns& turns) {
    for (const std::string_view key : system_keys) {
      const std::string text = use_text(key);
      if (!text.empty()) turns.put_system(text, key);
    }
    Record record{.kind = RecordKind::messages, .conversation = turns.take()};
    read_variables(record.conversation.variables);
    refuse_unused(record);
    return record;
  }

  void read_variables(Json& variables) {
    for (const std::string_view key : {"tools", "documents"}) {
      Json value = use(key);
      if (says_nothing(value)) continue;
      std::optional<Json> list = list_in(value);
      if (!list) fail(ErrorCode::input, "{}: {} is {}, not a list", place_, key, value.type_name());
      if (!list->empty()) variables[std::string(key)] = *std::move(list);
    }
    const Json kwargs = use("chat_template_kwargs");
    if (says_nothing(kwargs)) return;
    if (!kwargs.is_object()) {
      fail(ErrorCode::input, "{}: chat_template_kwargs is {}, not an object", place_,
           kwargs.type_name());
    }
    for (const auto& [key, value] : kwargs.items()) {
      const bool ours = key == "messages" || key == "add_generation_prompt";
      if (ours || variables.contains(key)) {
        fail(ErrorCode::input, "{}: chat_template_kwargs has {}, which the record decides", place_,
             key);
      }
      variables[key] = value;
    }
  }

  void refuse_preferences() const {
    if (!says_something(object_, "chosen") || !says_something(object_, "rejected")) return;
    fail(
        ErrorCode::input,
        "{}: training on preferences (chosen, rejected) is not implemented; to learn the chosen "
        "answers, leave rejected out and rename chosen to completion, or to messages if it has the "
        "question",
        place_);
  }

  /// Refuses a record whose answer is marked as bad, or counts less than others.
  void refuse_judgement() const {
    if (object_.value("label", Json()) == false) {  // KTO's label
      fail(ErrorCode::input, "{}: label is false, and bad answers are not learned; leave it out",
           place_);
    }
    const Json* const weight = find_value(object_, "weight");
    if (weight != nullptr && *weight != 1 && *weight != true) {
      fail(ErrorCode::input, "{}: weight is {}; only 1 is implemented for a record", place_,
           printable(weight->dump()));
    }
    // In NeMo, the name of the speaker that is not learned.
    const Json mask = object_.value("mask", Json());
    if (says_nothing(mask) || mask == "User" || mask == "user" || mask == "human") return;
    fail(ErrorCode::input, "{}: mask is not implemented, but for \"User\"", place_);
  }

  void refuse_second_answer(std::string_view answer) const {
    for (const std::string_view other : present(object_, answer_keys)) {
      if (other == answer || !says_something(object_, other)) continue;
      if (*find_value(object_, other) == *find_value(object_, answer)) continue;
      fail(ErrorCode::input, "{}: holds both {} and {}; leave one out", place_, answer, other);
    }
  }

  /// Refuses keys that no layout has used, unless the model sees their text in another one.
  void refuse_unused(const Record& record) const {
    for (const std::string_view key : seen_keys) {
      const Json* const value = find_value(object_, key);
      if (value == nullptr || says_nothing(*value)) continue;
      if (value->is_string() && has_text(record, value->get_ref<const std::string&>())) continue;
      refuse_ignored(key);
    }
  }

  [[noreturn]] void refuse_ignored(std::string_view key) const {
    fail(ErrorCode::input,
         "{}: {} is beside {} and would be ignored; leave it out, or write it into one of them",
         place_, key, fmt::join(used_, ", "));
  }

  [[noreturn]] void refuse_unknown() const {
    if (object_.contains("text")) text_under(object_, "text", place_);  // null
    if (object_.contains("input_ids") && object_.contains("labels")) {
      fail(ErrorCode::input,
           "{}: is a pair of token ids (input_ids, labels), for an encoder-decoder: give a T5 as "
           "--model_name_or_path; a decoder learns text, prompt with completion, or messages",
           place_);
    }
    if (object_.contains("role") && object_.contains("content")) {
      fail(ErrorCode::input,
           "{}: is a message, not a record; a record is {{\"messages\": [...]}} with all of a "
           "conversation",
           place_);
    }
    for (const Keys keys : {Keys(turn_keys), Keys(answer_keys), Keys(question_keys)}) {
      for (const std::string_view key : keys) {
        if (!object_.contains(key) || find_value(object_, key) != nullptr) continue;
        fail(ErrorCode::input, "{}: {} is null", place_, key);
      }
    }
    fail(ErrorCode::input, "{}: no known layout of records has the keys {}; {}", place_,
         keys_of(object_), known_layouts);
  }

  Json& object_;
  const RecordOptions& options_;
  const std::string& place_;
  std::vector<std::string_view> used_;
};

}  // namespace

Record read_layout(Json& object, const RecordOptions& options, const std::string& place) {
  if (!options.text_column.empty()) return {.text = text_under(object, options.text_column, place)};
  return LayoutReader(object, options, place).read();
}

std::string text_under(const Json& object, const std::string& key, const std::string& place) {
  const auto field = object.find(key);
  if (field == object.end()) {
    fail(ErrorCode::input,
         "{}: {} is missing; --text_column names the key of the text, and the "
         "record has {}",
         place, key, keys_of(object));
  }
  if (!field->is_string()) {
    fail(ErrorCode::input, "{}: {} is {}, not a string", place, key, field->type_name());
  }
  return field->get<std::string>();
}

bool has_answers(const Json& object) {
  return !present(object, turn_keys).empty() || has_completion(object) ||
         find_pair(object).has_value();
}

bool has_layout(const Json& object) {
  return find_value(object, "text") != nullptr || find_value(object, "chosen") != nullptr ||
         has_answers(object);
}

std::string keys_of(const Json& object) {
  constexpr std::size_t shown_max = 8;
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    if (keys.size() == shown_max) {
      keys.emplace_back("...");
      break;
    }
    keys.push_back(printable(key));
  }
  return keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", "));
}

}  // namespace dstrain::data
