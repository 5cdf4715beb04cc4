#include "runtime/data/turns.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/base/utf8.h"
#include "runtime/data/record_layout.h"

namespace dstrain::data {
namespace {

using Json = nlohmann::ordered_json;

/// A role under the name that another program gives it.
struct ForeignRole {
  std::string_view name;  ///< in lower case
  std::string_view role;
};

constexpr std::array<ForeignRole, 11> foreign_roles{{{"human", "user"},
                                                     {"prompter", "user"},
                                                     {"gpt", "assistant"},
                                                     {"model", "assistant"},
                                                     {"bot", "assistant"},
                                                     {"chatgpt", "assistant"},
                                                     {"ai", "assistant"},
                                                     {"bard", "assistant"},
                                                     {"observation", "tool"},
                                                     {"function", "tool"},
                                                     {"function_call", "function_call"}}};

/// Keys of a turn that is a question with its answer, as in XTuner and MOSS.
constexpr std::array<std::array<const char*, 2>, 4> rounds{
    {{"input", "output"}, {"human", "assistant"}, {"user", "assistant"}, {"prompt", "response"}}};

/// Whether an answer is learned, by its own keys. Throws Error{input} for a weight between 0 and 1.
bool is_learned(const Json& turn, const std::string& place) {
  static constexpr std::array<std::string_view, 5> keys{"weight", "train", "training", "loss",
                                                        "output_with_loss"};
  bool learned = true;
  for (const std::string_view key : keys) {
    const Json* const value = find_value(turn, key);
    if (value == nullptr || *value == 1 || *value == true) continue;
    if (*value != 0 && *value != false) {
      fail(ErrorCode::input, "{}.{} is {}; only 0, 1, false and true are implemented", place, key,
           printable(value->dump()));
    }
    learned = false;
  }
  for (const std::string_view key : {"train_detail", "training_detail"}) {
    const Json* const value = find_value(turn, key);
    if (value == nullptr || says_nothing(*value)) continue;
    fail(ErrorCode::input, "{}.{} is not implemented; leave it out", place, key);
  }
  return learned;
}

/// Refuses a part of a content that is not text.
void check_parts(const Json& parts, const std::string& place) {
  for (const Json& part : parts) {
    const auto type = part.is_object() ? part.find("type") : part.end();
    const bool is_text = part.is_object() && type != part.end() && *type == "text" &&
                         part.contains("text") && part.at("text").is_string();
    if (is_text) continue;
    fail(ErrorCode::input, "{} has a part of {}; only text is implemented", place,
         part.is_object() && type != part.end() ? printable("type " + type->dump())
                                                : part.type_name());
  }
}

void check_content(const Json& message, const std::string& place) {
  const auto content = message.find("content");
  const Json* const calls = find_value(message, "tool_calls");
  if (content == message.end() || content->is_null()) {
    if (calls != nullptr && !calls->empty()) return;
    fail(ErrorCode::input, "{} is {}", place, content == message.end() ? "missing" : "null");
  }
  // What a tool returns may be JSON, which templates write as such.
  const bool of_tool = message.at("role") == "tool" || message.at("role") == "ipython";
  if (content->is_string() || (of_tool && content->is_object())) return;
  if (content->is_array()) return check_parts(*content, place);
  fail(ErrorCode::input, "{} is {}, not a string", place, content->type_name());
}

/// Returns tool_calls for a function with its arguments, or a list of them.
Json calls_of(const Json& functions, const std::string& place) {
  Json calls = Json::array();
  for (const Json& function : functions.is_array() ? functions : Json::array({functions})) {
    const bool named =
        function.is_object() && function.contains("name") && function.contains("arguments");
    if (!named) {
      fail(ErrorCode::input, "{} is not a function's name and arguments in JSON", place);
    }
    calls.push_back({{"type", "function"}, {"function", function}});
  }
  return calls;
}

/// Makes a call of a tool of ShareGPT's turn function_call, whose text is JSON.
void make_call(Json& message, const std::string& place) {
  const auto content = message.find("content");
  const Json functions = content != message.end() && content->is_string()
                             ? Json::parse(content->get_ref<const std::string&>(), nullptr, false)
                             : Json();
  Json calls = calls_of(functions, place);
  message["role"] = "assistant";
  message["content"] = "";
  message["tool_calls"] = std::move(calls);
}

}  // namespace

const Json* find_value(const Json& object, std::string_view key) {
  const auto field = object.find(key);
  return field == object.end() || field->is_null() ? nullptr : &*field;
}

bool says_nothing(const Json& value) {
  if (value.is_boolean()) return true;
  if (!value.is_string()) return value.empty();
  const auto& text = value.get_ref<const std::string&>();
  return text.empty() || text == "[]";
}

std::optional<Json> list_in(Json& value) {
  if (value.is_array()) return std::move(value);
  if (!value.is_string()) return std::nullopt;
  Json list = Json::parse(value.get_ref<const std::string&>(), nullptr, false);
  return list.is_array() ? std::optional(std::move(list)) : std::nullopt;
}

void refuse_media(const Json& object, const std::string& place) {
  for (const std::string_view key : {"images", "image", "videos", "video", "audios", "audio"}) {
    const auto field = object.find(key);
    if (field == object.end() || says_nothing(*field)) continue;
    fail(ErrorCode::input, "{}: {} is not implemented; only text is", place, key);
  }
}

void Turns::add_list(Json list, std::string_view key, bool learned) {
  if (list.empty()) fail(ErrorCode::input, "{}: {} is empty", place_, key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string name = fmt::format("{}: {}[{}]", place_, key, i);
    if (!list[i].is_object()) {
      fail(ErrorCode::input, "{} is {}, not an object", name, list[i].type_name());
    }
    add_turn(list[i], name, learned);
  }
}

void Turns::add_any(Json value, std::string_view key, std::string_view role, bool learned) {
  if (value.is_array()) return add_list(std::move(value), key, learned);
  const std::string name = fmt::format("{}: {}", place_, key);
  if (value.is_object()) return add_turn(value, name, learned);
  if (!value.is_string()) {
    fail(ErrorCode::input, "{} is {}, neither a string nor messages", name, value.type_name());
  }
  push({{"role", role}, {"content", std::move(value)}}, learned);
}

void Turns::add(std::string_view role, std::string text) {
  push({{"role", role}, {"content", std::move(text)}}, true);
}

void Turns::put_system(const std::string& text, std::string_view key) {
  Json& messages = conversation_.messages;
  if (!messages.empty() && messages.front().at("role") == "system") {
    if (messages.front().value("content", Json()) == text) return;
    fail(ErrorCode::input, "{}: {} is beside another system message; leave one", place_, key);
  }
  const Json system{{"role", "system"}, {"content", text}};
  messages.insert(messages.begin(), system);
  conversation_.learned.insert(conversation_.learned.begin(), true);
}

void Turns::push(Json message, bool learned) {
  conversation_.messages.push_back(std::move(message));
  conversation_.learned.push_back(learned);
}

std::string Turns::role_of(const std::string& name, const std::string& turn) const {
  static constexpr std::array<std::string_view, 6> known{"system", "user",      "assistant",
                                                         "tool",   "developer", "ipython"};
  if (const auto own = options_.role_names.find(name); own != options_.role_names.end()) {
    return own->second;
  }
  std::string lower = lower_case(name);
  std::ranges::replace(lower, '-', '_');
  if (std::ranges::find(known, lower) != known.end()) return lower;
  const auto* const foreign = std::ranges::find(foreign_roles, lower, &ForeignRole::name);
  if (foreign != foreign_roles.end()) return std::string(foreign->role);
  const std::string shown = printable(name);
  fail(ErrorCode::input,
       "{}: the role {} is unknown; say which one it is: --role_names {}=user, or =assistant, "
       "=system or =tool",
       turn, shown, shown);
}

bool Turns::add_round(Json& turn, const std::string& name, bool learned) {
  for (const auto& [question, answer] : rounds) {
    if (!turn.contains(question) || !turn.contains(answer)) continue;
    refuse_media(turn, name);
    if (const Json* const system = find_value(turn, "system"); system && !says_nothing(*system)) {
      push({{"role", "system"}, {"content", *system}}, true);
    }
    push({{"role", "user"}, {"content", turn.at(question)}}, true);
    check_content(conversation_.messages.back(), fmt::format("{}.{}", name, question));
    push({{"role", "assistant"}, {"content", turn.at(answer)}}, learned && is_learned(turn, name));
    check_content(conversation_.messages.back(), fmt::format("{}.{}", name, answer));
    return true;
  }
  return false;
}

void Turns::add_turn(Json& turn, const std::string& name, bool learned) {
  const char* const speaker = find_value(turn, "role") != nullptr ? "role" : "from";
  const bool shares = turn.contains("value") && !turn.contains("content");
  const char* const text = shares ? "value" : "content";
  const Json* const role = find_value(turn, speaker);
  if (role == nullptr && add_round(turn, name, learned)) return;
  if (role == nullptr) fail(ErrorCode::input, "{}.role is missing, but {}", name, keys_of(turn));
  if (!role->is_string()) {
    fail(ErrorCode::input, "{}.{} is {}, not a string", name, speaker, role->type_name());
  }
  refuse_media(turn, name);
  Json message = Json::object();
  const std::string own_role = role_of(role->get<std::string>(), name);
  const bool answers = own_role == "assistant" || own_role == "function_call";
  const bool counts = learned && (!answers || is_learned(turn, name));
  for (auto& [key, value] : turn.items()) {
    if (key == speaker) {
      message["role"] = own_role;
    } else if (key == text) {
      message["content"] = std::move(value);
    } else if (!value.is_null()) {
      message[key] = std::move(value);
    }
  }
  if (own_role == "function_call") make_call(message, fmt::format("{}.{}", name, text));
  if (const auto call = message.find("function_call"); call != message.end()) {
    message["tool_calls"] = calls_of(*call, name + ".function_call");
    message.erase("function_call");
  }
  check_content(message, fmt::format("{}.{}", name, text));
  push(std::move(message), counts);
}

}  // namespace dstrain::data
