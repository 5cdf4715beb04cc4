#include "runtime/data/chat_template.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/exception_text.h"
#include "runtime/base/json_text.h"
#include "runtime/base/printable.h"
#include "runtime/data/conversation.h"
#include "runtime/os/file.h"

namespace dstrain::data {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr Bytes template_bytes_max = mebibyte;

/// The parts of messages that templates may leave out one by one. Each part of each message is a
/// source of text.
enum class Part { content, tool_calls, thought };
constexpr int parts_of_message = 3;
constexpr int no_source = -2;  ///< of texts that belong to no message

int source_of(std::size_t message, Part part) {
  return static_cast<int>(message) * parts_of_message + static_cast<int>(part);
}

std::size_t message_of(int source) {
  return static_cast<std::size_t>(source) / parts_of_message;
}

constexpr std::array<std::string_view, 3> thought_keys{"reasoning_content", "thinking",
                                                       "reasoning"};

Part part_of(std::string_view key) {
  if (key == "tool_calls" || key == "function_call") return Part::tool_calls;
  return key == "content" ? Part::content : Part::thought;
}

/// Converts JSON to a value whose texts come from `source`.
jinja::Value value_of(const ordered_json& from, int source) {
  switch (from.type()) {
    case ordered_json::value_t::null:
      return jinja::None{};
    case ordered_json::value_t::boolean:
      return from.get<bool>();
    case ordered_json::value_t::number_float:
      return from.get<double>();
    case ordered_json::value_t::number_integer:
      return from.get<std::int64_t>();
    case ordered_json::value_t::number_unsigned: {
      const auto number = from.get<std::uint64_t>();
      if (number >> 63 != 0) jinja::refuse("the number ", from.dump(), " does not fit in 64 bits");
      return static_cast<std::int64_t>(number);
    }
    case ordered_json::value_t::string: {
      jinja::Text text{from.get<std::string>()};
      if (source != no_source) text.mark(source);
      return text;
    }
    case ordered_json::value_t::array: {
      jinja::List list;
      for (const ordered_json& item : from) list.items.push_back(value_of(item, source));
      return list;
    }
    default:
      break;
  }
  jinja::Dict dict;
  if (from.empty() && source != no_source) dict.source = source;
  for (const auto& [key, value] : from.items()) {
    dict.entries.emplace_back(jinja::Text{key}, value_of(value, source));
  }
  return dict;
}

/// Returns message number `index` as a template sees it: without null, and with its thoughts under
/// the names that templates read (transformers' _alias_reasoning_fields). Names and ids, which
/// templates write around the text of a message, have no source.
jinja::Value message_value(const ordered_json& message, std::size_t index) {
  static constexpr std::array<std::string_view, 3> around{"role", "name", "tool_call_id"};
  jinja::Dict dict;
  for (const auto& [key, value] : message.items()) {
    if (value.is_null()) continue;
    const bool is_around = std::ranges::find(around, key) != around.end();
    const int source = is_around ? no_source : source_of(index, part_of(key));
    dict.entries.emplace_back(jinja::Text{key}, value_of(value, source));
  }
  for (const std::string_view key : thought_keys) {
    const jinja::Value* const found = dict.at(key);
    if (found == nullptr) continue;
    const jinja::Value thought = *found;
    const jinja::Value* const own = dict.at("thinking");
    const jinja::Value first = own == nullptr ? thought : *own;
    std::erase_if(dict.entries,
                  [](const auto& entry) { return entry.first.text()->bytes == "thinking"; });
    dict.entries.emplace(dict.entries.begin(), jinja::Text{"thinking"}, first);
    dict.set(jinja::Text{"reasoning_content"}, thought);
    break;
  }
  return dict;
}

/// Python's datetime.strftime for a day without a time.
jinja::Value date_text(const std::chrono::year_month_day& date, const std::string& format) {
  const std::chrono::sys_days days(date);
  const std::chrono::weekday weekday(days);
  const auto first = std::chrono::sys_days(date.year() / std::chrono::January / 1);
  std::tm time{};
  time.tm_year = static_cast<int>(date.year()) - 1900;
  time.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
  time.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
  time.tm_wday = static_cast<int>(weekday.c_encoding());
  time.tm_yday = static_cast<int>((days - first).count());
  std::array<char, 256> buffer{};
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &time);
  if (size == 0 && !format.empty()) jinja::refuse("strftime_now(): a date of 256 bytes or more");
  return jinja::Text{std::string(buffer.data(), size)};
}

jinja::Value clock_function(const std::optional<std::chrono::year_month_day>& date) {
  return jinja::Callable{
      "strftime_now", [date](jinja::Interpreter&, jinja::Arguments& arguments) {
        const bool has_format = arguments.positional.size() == 1 && arguments.named.empty() &&
                                arguments.positional.front().text() != nullptr;
        if (!has_format) jinja::refuse("strftime_now() takes a format");
        if (!date) {
          jinja::refuse(
              "the template writes the day's date, so each day would have other tokens; pass "
              "--chat_date YYYY-MM-DD");
        }
        return date_text(*date, arguments.positional.front().text()->bytes);
      }};
}

std::size_t shared_size(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

/// Renders one conversation, whole and up to its answers.
class ChatTemplate::Renderer {
 public:
  Renderer(const ChatTemplate& chat, const Conversation& conversation, const TextEncoder& encoder)
      : conversation_(conversation), encoder_(encoder), source_(chat.choose(conversation)) {
    for (std::size_t i = 0; i < conversation.messages.size(); ++i) {
      messages_.push_back(message_value(conversation.messages[i], i));
    }
    for (const auto& [name, text] : chat.tokens_) variables_.emplace_back(name, jinja::Text{text});
    variables_.emplace_back("strftime_now", clock_function(chat.options_.date));
    for (const char* const name : {"tools", "documents"}) set(name, jinja::None{});
    set("add_generation_prompt", false);
    for (const auto& [name, value] : conversation.variables.items()) {
      set(name, value_of(value, no_source));
    }
    if (const auto eos = chat.tokens_.find("eos_token"); eos != chat.tokens_.end()) {
      end_of_text_ = eos->second;
    }
  }

  /// Renders what a model continues.
  Result<std::string> render_for_answer() {
    if (auto dropped = dropped_variable()) return *dropped;
    const std::size_t last = messages_.size() - 1;
    Result<jinja::Text> text =
        is_answer(last) ? render_first(messages_.size()) : render_prompt(messages_.size());
    if (!text.ok()) return text.failure();
    whole_ = std::move(text.value());
    for (std::size_t i = 0; i < messages_.size(); ++i) extents_.push_back(extent_of(whole_, i));
    if (auto dropped = dropped_part()) return *dropped;
    if (!is_answer(last)) return whole_.bytes;
    return whole_.bytes.substr(0, extents_[last]->end);
  }

  Result<RenderedChat> render() {
    if (auto dropped = dropped_variable()) return *dropped;
    Result<jinja::Text> whole = render_first(messages_.size());
    if (!whole.ok()) return whole.failure();
    whole_ = std::move(whole.value());
    for (std::size_t i = 0; i < messages_.size(); ++i) extents_.push_back(extent_of(whole_, i));
    if (auto dropped = dropped_part()) return *dropped;
    RenderedChat rendered{whole_.bytes, {}};
    if (source_.text.marks_generation()) {
      rendered.answers = generated_answers();
      return rendered;
    }
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (!is_answer(i) || !conversation_.learned[i]) continue;
      const Result<ByteRange> answer = find_answer(i);
      if (!answer.ok()) return answer.failure();
      rendered.answers.push_back(answer.value());
    }
    return rendered;
  }

 private:
  [[nodiscard]] bool is_answer(std::size_t index) const {
    return conversation_.messages[index].at("role") == "assistant";
  }

  [[nodiscard]] std::string name_of(std::size_t index) const {
    const auto& role = conversation_.messages[index].at("role").get_ref<const std::string&>();
    return fmt::format("messages[{}] ({})", index, printable(role));
  }

  void set(const std::string& name, jinja::Value value) {
    std::erase_if(variables_, [&](const auto& held) { return held.first == name; });
    variables_.emplace_back(name, std::move(value));
  }

  Result<jinja::Text> render_messages(std::vector<jinja::Value> messages) {
    set("messages", jinja::make_list(std::move(messages)));
    Result<jinja::Text> text = source_.text.render(variables_);
    if (text.ok()) return text;
    return Failure{source_.place + text.error()};
  }

  /// Renders the first messages.
  Result<jinja::Text> render_first(std::size_t count) {
    return render_messages(
        {messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(count)});
  }

  /// The same with the prompt for an answer behind them.
  Result<jinja::Text> render_prompt(std::size_t count) {
    set("add_generation_prompt", true);
    Result<jinja::Text> text = render_first(count);
    set("add_generation_prompt", false);
    return text;
  }

  [[nodiscard]] std::optional<Failure> dropped_variable() const {
    for (const char* const name : {"tools", "documents"}) {
      const auto field = conversation_.variables.find(name);
      if (field == conversation_.variables.end() || field->empty()) continue;
      if (!source_.text.names(name)) {
        return Failure{fmt::format("{}: the chat template has no place for them", name)};
      }
    }
    return std::nullopt;
  }

  /// Finds what left no trace in the text, and so would silently not be seen or learned.
  [[nodiscard]] std::optional<Failure> dropped_part() {
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const std::string_view left_out = left_out_part(i);
      if (left_out.empty()) continue;
      return Failure{fmt::format("{}: the chat template leaves out {}", name_of(i), left_out)};
    }
    return std::nullopt;
  }

  std::string_view left_out_part(std::size_t index) {
    if (leaves_out(index, Part::tool_calls, "tool_calls")) return "its tool calls";
    if (leaves_out(index, Part::content, "content")) {
      const jinja::Value* const content = messages_[index].dict()->at("content");
      if (content->list() != nullptr) return "its content, which is a list of parts";
      // Templates drop the thoughts of earlier answers, which may be all that these are.
      const bool is_thought = content->text()->bytes.find("</think>") != std::string::npos;
      if (!is_answer(index) || !is_thought) return "this message";
    }
    const bool ends = is_answer(index) && index + 1 == messages_.size();
    if (ends && leaves_out(index, Part::thought, "reasoning_content")) {
      return "its thoughts; write them into its content, or leave them out of the record";
    }
    if (!is_answer(index) || extents_[index] || source_.text.marks_generation()) return {};
    // An empty answer is where the prompt for it ends.
    const Result<jinja::Text> prompt = render_prompt(index);
    if (!prompt.ok() || !whole_.bytes.starts_with(prompt.value().bytes)) return "this answer";
    extents_[index] = ByteRange{prompt.value().bytes.size(), prompt.value().bytes.size()};
    return {};
  }

  [[nodiscard]] bool leaves_out(std::size_t index, Part part, std::string_view key) const {
    const jinja::Value* const value = messages_[index].dict()->at(key);
    return value != nullptr && value->truth() && !whole_.extent(source_of(index, part));
  }

  /// Where the parts of a message are in a text, from the first to the last.
  static std::optional<ByteRange> extent_of(const jinja::Text& text, std::size_t index) {
    std::optional<ByteRange> all;
    for (const Part part : {Part::content, Part::tool_calls, Part::thought}) {
      const auto extent = text.extent(source_of(index, part));
      // An empty text is where the template put it, which may be before the others.
      if (!extent || (all && extent->begin == extent->end)) continue;
      const bool replaces = !all || all->begin == all->end;
      all = replaces
                ? ByteRange{extent->begin, extent->end}
                : ByteRange{std::min(all->begin, extent->begin), std::max(all->end, extent->end)};
    }
    return all;
  }

  /// The spans of {% generation %} in answers that are learned.
  [[nodiscard]] std::vector<ByteRange> generated_answers() const {
    std::vector<ByteRange> answers;
    for (const jinja::Origin& origin : whole_.origins) {
      if (origin.source != jinja::generated || origin.begin == origin.end) continue;
      if (is_learned(origin)) answers.push_back({origin.begin, origin.end});
    }
    std::ranges::sort(answers, {}, &ByteRange::begin);
    return answers;
  }

  /// Whether the span belongs to an answer that counts: the last one that begins before its end.
  [[nodiscard]] bool is_learned(const jinja::Origin& span) const {
    bool learned = true;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const bool before = is_answer(i) && extents_[i] && extents_[i]->begin <= span.end;
      if (before) learned = conversation_.learned[i];
    }
    return learned;
  }

  Result<ByteRange> find_answer(std::size_t index) {
    ByteRange content = *extents_[index];
    const bool ends_chat = index + 1 == messages_.size();
    // What the template writes if the answer is the last message.
    const Result<jinja::Text> alone = ends_chat ? whole_ : render_first(index + 1);
    std::optional<ByteRange> own;
    if (alone.ok()) own = extent_of(alone.value(), index);
    // Names of called tools may also be in the headers of the tools' turns.
    if (own && text_in(whole_, {content.begin, content.begin + own->end - own->begin}) ==
                   text_in(alone.value(), *own)) {
      content.end = content.begin + own->end - own->begin;
    }
    std::size_t before = 0;                   // the end of other messages before it
    std::size_t after = whole_.bytes.size();  // the begin of those after it
    for (const jinja::Origin& origin : whole_.origins) {
      if (origin.source < 0 || message_of(origin.source) == index) continue;
      if (origin.end <= content.begin) {
        before = std::max(before, origin.end);
      } else if (origin.begin >= content.end) {
        after = std::min(after, origin.begin);
      } else {
        return Failure{fmt::format(
            "{}: the chat template writes other messages between parts of this answer, so it is "
            "unknown what is to be learned",
            name_of(index))};
      }
    }
    const std::string_view rest = text_in(whole_, {content.end, after});
    const std::size_t marker =
        own ? marker_size(rest, text_in(alone.value(), {own->end, alone.value().bytes.size()}))
            : first_marker_size(rest);
    return ByteRange{begin_of_answer(index, content.begin, before), content.end + marker};
  }

  static std::string_view text_in(const jinja::Text& text, ByteRange range) {
    const std::size_t begin = std::min(range.begin, text.bytes.size());
    return std::string_view(text.bytes).substr(begin, range.end - begin);
  }

  /// Where the prompt for the answer ends; the begin of its text if that is unknown.
  std::size_t begin_of_answer(std::size_t index, std::size_t content_begin, std::size_t before) {
    const Result<jinja::Text> prompt = render_prompt(index);
    if (!prompt.ok()) return content_begin;
    const std::string_view text = prompt.value().bytes;
    if (!source_.text.names("add_generation_prompt")) {
      const std::size_t shared = std::min(shared_size(text, whole_.bytes), content_begin);
      if (shared < before) return content_begin;
      return shared + header_size(index, text_in(whole_, {shared, content_begin}), text.size());
    }
    if (whole_.bytes.starts_with(text)) return std::min(text.size(), content_begin);
    // The template writes something else before: only what the prompt adds counts.
    const Result<jinja::Text> without = render_first(index);
    if (!without.ok()) return content_begin;
    const std::string_view added = text.substr(shared_size(text, without.value().bytes));
    return end_of_prompt(added, content_begin, before);
  }

  /// Where the text best agrees with a prompt, and leaves it.
  [[nodiscard]] std::size_t end_of_prompt(std::string_view prompt,
                                          std::size_t content_begin,
                                          std::size_t before) const {
    std::size_t best = 0;
    std::size_t end = content_begin;
    for (std::size_t at = before; at < content_begin; ++at) {
      const std::size_t shared = shared_size(prompt, text_in(whole_, {at, content_begin}));
      if (shared < best || shared == 0) continue;
      best = shared;
      end = at + shared;
    }
    return end;
  }

  /// The size of a turn's header at the begin of `gap`, for templates without a prompt for answers:
  /// what they also write before a plain answer.
  std::size_t header_size(std::size_t index, std::string_view gap, std::size_t prompt_size) {
    if (is_blank(gap)) return 0;
    std::vector<jinja::Value> messages(messages_.begin(),
                                       messages_.begin() + static_cast<std::ptrdiff_t>(index));
    const ordered_json plain{{"role", "assistant"}, {"content", "x"}};
    messages.push_back(message_value(plain, index));
    const Result<jinja::Text> text = render_messages(std::move(messages));
    const auto extent = text.ok() ? extent_of(text.value(), index) : std::nullopt;
    if (!extent || extent->begin < prompt_size) return gap.size();
    const std::string_view other = text_in(text.value(), {prompt_size, extent->begin});
    const std::size_t header = shared_size(gap, other);
    return is_blank(gap.substr(0, header)) ? 0 : header;
  }

  /// The size of the marker in `rest`, what the template writes behind an answer; `last`: what it
  /// writes if no message follows.
  [[nodiscard]] std::size_t marker_size(std::string_view rest, std::string_view last) const {
    const std::string_view ending = last.substr(0, last.find_last_not_of(" \t\r\n") + 1);
    const auto special = encoder_.first_special(ending);
    if (!special) {
      if (!rest.starts_with(ending)) return 0;
      // The next turn's header is what ends this one, as in GLM-4.
      const auto header = special_at_begin(rest.substr(ending.size()));
      return ending.size() + (header ? header->end : 0);
    }
    std::size_t end = special->end;
    if (rest.substr(0, end) != ending.substr(0, end)) return first_marker_size(rest);
    while (!ends_text(rest.substr(0, end))) {
      const auto next = encoder_.first_special(rest.substr(end));
      const bool follows = next && next->begin == 0 &&
                           rest.substr(0, end + next->end) == ending.substr(0, end + next->end);
      if (!follows) break;
      end += next->end;
    }
    return end;
  }

  /// The first special token, perhaps behind brackets, is the marker if another one follows it:
  /// otherwise it may be the header of the next turn.
  [[nodiscard]] std::size_t first_marker_size(std::string_view rest) const {
    const auto first = encoder_.first_special(rest);
    if (!first || !special_at_begin(rest.substr(first->end))) return 0;
    const std::string_view closing = rest.substr(0, first->begin);
    return closing.find_first_not_of(" \t\r\n]})\"'") == std::string_view::npos ? first->end : 0;
  }

  [[nodiscard]] bool ends_text(std::string_view text) const {
    return !end_of_text_.empty() && text.ends_with(end_of_text_);
  }

  /// The special token that a text begins with, behind white space.
  [[nodiscard]] std::optional<ByteRange> special_at_begin(std::string_view text) const {
    const auto special = encoder_.first_special(text);
    return special && is_blank(text.substr(0, special->begin)) ? special : std::nullopt;
  }

  const Conversation& conversation_;
  const TextEncoder& encoder_;
  const Source& source_;
  std::string end_of_text_;
  std::vector<jinja::Value> messages_;
  jinja::Template::Variables variables_;
  jinja::Text whole_;
  std::vector<std::optional<ByteRange>> extents_;  ///< of the messages in whole_
};

Result<RenderedChat> ChatTemplate::render(const Conversation& conversation,
                                          const TextEncoder& encoder) const {
  try {
    return Renderer(*this, conversation, encoder).render();
  } catch (const jinja::TemplateError& error) {  // of a number, or nesting, in the record
    return Failure{error.message};
  }
}

Result<std::string> ChatTemplate::render_prompt(const Conversation& conversation,
                                                const TextEncoder& encoder) const {
  try {
    return Renderer(*this, conversation, encoder).render_for_answer();
  } catch (const jinja::TemplateError& error) {
    return Failure{error.message};
  }
}

const ChatTemplate::Source& ChatTemplate::choose(const Conversation& conversation) const {
  const auto tools = conversation.variables.find("tools");
  const bool has_tools = tools != conversation.variables.end() && !tools->is_null();
  const auto for_tools = sources_.find("tool_use");
  if (has_tools && for_tools != sources_.end()) return for_tools->second;
  return sources_.find("default")->second;
}

std::optional<Failure> ChatTemplate::add(std::string_view name,
                                         std::string_view jinja,
                                         std::string place) {
  Result<jinja::Template> parsed = jinja::Template::parse(jinja);
  if (!parsed.ok()) return Failure{place + parsed.error()};
  sources_.insert_or_assign(std::string(name), Source{std::move(place), std::move(parsed.value())});
  return std::nullopt;
}

Result<ChatTemplate> ChatTemplate::parse(std::string_view jinja,
                                         const TokenTexts& tokens,
                                         const ChatOptions& options) {
  ChatTemplate chat(tokens, options);
  if (auto failure = chat.add("default", jinja, {})) return *failure;
  return chat;
}

namespace {

json read_object(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return json::object();
  return parse_json_object(read_text_file(file, 64 * mebibyte), file.string());
}

/// The special tokens that transformers gives to templates: strings, or the "content" of objects.
void add_token_texts(const json& config, ChatTemplate::TokenTexts& tokens) {
  static constexpr std::array<const char*, 7> names{
      "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};
  for (const char* const name : names) {
    auto field = config.find(name);
    if (field == config.end()) continue;
    const json& text = field->is_object() ? field->value("content", json()) : *field;
    if (text.is_string()) tokens.emplace(name, text.get<std::string>());
  }
}

/// Templates by their names, each with the place that begins its errors.
struct NamedTemplate {
  std::string name;
  std::string jinja;
  std::string place;
};

std::vector<NamedTemplate> templates_in(const std::filesystem::path& directory,
                                        const json& tokenizer_config) {
  std::vector<NamedTemplate> found;
  const auto add_file = [&](const std::string& name, const std::filesystem::path& file) {
    found.push_back({name, read_text_file(file, template_bytes_max), file.string() + ": "});
  };
  const std::filesystem::path file = directory / "chat_template.jinja";
  if (std::filesystem::exists(file)) add_file("default", file);
  for (const std::filesystem::path& other : additional_chat_templates(directory)) {
    add_file(other.stem(), other);
  }
  if (!found.empty()) return found;
  for (const char* const name : {"tokenizer_config.json", "chat_template.json"}) {
    const bool is_config = std::string_view(name) == "tokenizer_config.json";
    const json config = is_config ? tokenizer_config : read_object(directory / name);
    const auto field = config.find("chat_template");
    if (field == config.end() || field->is_null()) continue;
    const std::string place = (directory / name).string() + ": chat_template: ";
    if (field->is_string()) return {{"default", field->get<std::string>(), place}};
    for (const json& item : field->is_array() ? *field : json::array()) {
      if (!item.is_object() || !item.contains("name") || !item.contains("template")) {
        fail(ErrorCode::input, "{}a list of templates needs a name and a template each", place);
      }
      const auto template_name = item.at("name").get<std::string>();
      found.push_back({template_name, item.at("template").get<std::string>(),
                       fmt::format("{}{}: ", place, template_name)});
    }
    if (!field->is_array()) {
      fail(ErrorCode::input, "{}must be a string or a list of named templates", place);
    }
    return found;
  }
  return found;
}

}  // namespace

std::vector<std::filesystem::path> additional_chat_templates(
    const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = directory / "additional_chat_templates";
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".jinja") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

Result<ChatTemplate> ChatTemplate::load(const std::filesystem::path& directory,
                                        const ChatOptions& options) {
  try {
    const json config = read_object(directory / "tokenizer_config.json");
    TokenTexts tokens;
    add_token_texts(config, tokens);
    // Versions of transformers that do not list the added tokens keep the names in a second file.
    if (!config.contains("added_tokens_decoder")) {
      add_token_texts(read_object(directory / "special_tokens_map.json"), tokens);
    }
    ChatTemplate chat(std::move(tokens), options);
    for (const NamedTemplate& named : templates_in(directory, config)) {
      if (auto failure = chat.add(named.name, named.jinja, named.place)) return *failure;
    }
    if (chat.sources_.empty()) {
      return Failure{
          directory.string() +
          ": no chat template; put the model's own beside its tokenizer, as chat_template.jinja"};
    }
    if (!chat.sources_.contains("default")) {
      return Failure{directory.string() + ": none of its chat templates is named \"default\""};
    }
    return chat;
  } catch (const json::exception& error) {
    return Failure{directory.string() + ": " + exception_text(error)};
  } catch (const std::filesystem::filesystem_error& error) {
    return Failure{error.what()};
  } catch (const Error& error) {
    return Failure{error.what()};
  }
}

}  // namespace dstrain::data
