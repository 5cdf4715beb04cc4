#include "runtime/data/chat_template.h"

#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/data/conversation.h"
#include "runtime/os/file.h"
#include "tests/data/token_files.h"
#include "tests/data/word_encoder.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using data::ChatTemplate;
using data::Conversation;
using data::RenderedChat;
using nlohmann::ordered_json;

const std::filesystem::path golden_folder =
    std::filesystem::path(DSTRAIN_SOURCE_DIR) / "tests/golden";

const std::string chatml =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}";

const ChatTemplate::TokenTexts token_texts{{"bos_token", "<s>"}, {"eos_token", "</s>"}};
constexpr std::chrono::year_month_day november{std::chrono::year(2026), std::chrono::month(11),
                                               std::chrono::day(29)};

/// Knows the special tokens of the models whose templates are tested.
const WordEncoder& encoder() {
  static const WordEncoder words([] {
    WordEncoder::Options options;
    options.special = {"<s>",
                       "</s>",
                       "<|im_start|>",
                       "<|im_end|>",
                       "<|im_sep|>",
                       "<|eot_id|>",
                       "<|start_header_id|>",
                       "<|end_header_id|>",
                       "<start_of_turn>",
                       "<end_of_turn>",
                       "<|end|>",
                       "<|return|>",
                       "<|call|>",
                       "<|start|>",
                       "<|channel|>",
                       "<|message|>",
                       "<|END_OF_TURN_TOKEN|>",
                       "<|end_of_text|>",
                       "<｜end▁of▁sentence｜>",
                       "[|endofturn|]"};
    return options;
  }());
  return words;
}

std::string golden_template(const std::string& name) {
  return read_text_file(golden_folder / "chat_templates" / (name + ".jinja"), mebibyte);
}

Result<ChatTemplate> parse(const std::string& jinja) {
  return ChatTemplate::parse(jinja, token_texts, {november});
}

Conversation conversation(const std::vector<ordered_json>& messages,
                          ordered_json variables = ordered_json::object()) {
  Conversation made;
  made.learned.assign(messages.size(), true);
  made.messages = messages;
  made.variables = std::move(variables);
  return made;
}

ordered_json user(const std::string& content) {
  return {{"role", "user"}, {"content", content}};
}

ordered_json assistant(const std::string& content) {
  return {{"role", "assistant"}, {"content", content}};
}

Conversation two_answers() {
  return conversation({user("Hi"), assistant(" A "), user("?"), assistant("B")});
}

ordered_json calls_of_weather() {
  return ordered_json::parse(R"([{"id": "abcdef012", "type": "function",
      "function": {"name": "weather", "arguments": {"city": "Paris"}}}])");
}

/// The variable of a list that holds one object.
ordered_json with_list(const std::string& name, const ordered_json& item) {
  return {{name, ordered_json::array({item})}};
}

/// A question that is answered through a tool.
Conversation with_tools() {
  ordered_json call;
  call["role"] = "assistant";
  call["tool_calls"] = calls_of_weather();
  const ordered_json result{
      {"role", "tool"}, {"content", "21"}, {"tool_call_id", "abcdef012"}, {"name", "weather"}};
  const auto tool = ordered_json::parse(R"({"type": "function", "function":
      {"name": "weather", "description": "d", "parameters": {"properties": {}}}})");
  return conversation({user("Hi"), call, result, assistant("Warm.")}, with_list("tools", tool));
}

Result<RenderedChat> render(const std::string& jinja, const Conversation& messages) {
  const auto chat = parse(jinja);
  if (!chat.ok()) return chat.failure();
  return chat.value().render(messages, encoder());
}

std::string text_of(const std::string& jinja, const Conversation& messages) {
  const auto rendered = render(jinja, messages);
  return rendered.ok() ? rendered.value().text : "error: " + rendered.error();
}

std::string repeated(const std::string& part, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += part;
  return text;
}

/// What is learned, with ^ behind each answer.
std::string answers_of(const std::string& jinja, const Conversation& messages) {
  const auto rendered = render(jinja, messages);
  if (!rendered.ok()) return "error: " + rendered.error();
  std::string text;
  for (const auto& [begin, end] : rendered.value().answers) {
    text += rendered.value().text.substr(begin, end - begin) + "^";
  }
  return text;
}

/// What differs from the golden rendering, or "".
std::string difference(const Result<RenderedChat>& found, const ordered_json& golden) {
  if (golden.contains("dropped")) {
    // Refused by the name of the first that leaves no trace in the text.
    const ordered_json& first = golden.at("dropped").front();
    const std::string place = first.is_string() ? first.get<std::string>() + ": "
                                                : fmt::format("messages[{}] ", first.get<int>());
    return !found.ok() && found.error().starts_with(place) ? "" : "not refused: " + place;
  }
  if (golden.contains("error")) {
    if (found.ok()) return "an error is missing";
    if (golden.at("error").is_boolean()) return "";
    const std::string expected = "the chat template says: " + golden.at("error").get<std::string>();
    return found.error() == expected ? "" : found.error();
  }
  if (!found.ok()) return found.error();
  return found.value().text == golden.at("text").get<std::string>() ? "" : found.value().text;
}

/// A model's directory.
class ModelDirectory {
 public:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((directory_.path() / name).parent_path());
    write_file(directory_.path() / name, text);
  }
  void write_config(const ordered_json& config) const {
    write("tokenizer_config.json", config.dump());
  }
  [[nodiscard]] std::string folder() const { return directory_.path().string(); }

  /// The text of one question, or the error.
  [[nodiscard]] std::string load(const ordered_json& variables = ordered_json::object()) const {
    const auto chat = ChatTemplate::load(directory_.path());
    if (!chat.ok()) return chat.error();
    const auto rendered = chat.value().render(conversation({user("Hi")}, variables), encoder());
    return rendered.ok() ? rendered.value().text : rendered.error();
  }

 private:
  TempDir directory_;
};

/// A template that writes its own name.
std::string named(const std::string& name) {
  return name + ":{{ messages[0].content }}{% if tools %}{% endif %}";
}

}  // namespace

TEST_CASE("ChatTemplate: renderings equal those of transformers", "[data][chat]") {
  const auto golden = ordered_json::parse(read_text_file(golden_folder / "chats.json", mebibyte));
  std::map<std::string, ChatTemplate> templates;
  std::size_t compared = 0;
  for (const ordered_json& item : golden.at("cases")) {
    const Conversation messages = conversation(item.at("messages").get<std::vector<ordered_json>>(),
                                               item.value("variables", ordered_json::object()));
    for (const auto& [name, expected] : item.at("rendered").items()) {
      if (!templates.contains(name)) templates.emplace(name, parse(golden_template(name)).value());
      CAPTURE(name, item.at("messages").dump());
      CHECK(difference(templates.at(name).render(messages, encoder()), expected) == "");
      ++compared;
    }
  }
  CHECK(templates.size() == 36);
  CHECK(compared > 1000);
}

TEST_CASE("ChatTemplate: an answer is learned with the marker of its end", "[data][chat]") {
  struct Row {
    std::string name;
    std::string answers;
  };
  const Row row = GENERATE(values<Row>({
      {"alpaca", " A </s>^B</s>^"},
      {"chatml", " A <|im_end|>^B<|im_end|>^"},
      {"chatml_generation", " A <|im_end|>^B<|im_end|>^"},
      {"command_r", "A<|END_OF_TURN_TOKEN|>^B<|END_OF_TURN_TOKEN|>^"},
      {"deepseek_r1", " A <｜end▁of▁sentence｜>^B<｜end▁of▁sentence｜>^"},
      {"exaone", " A [|endofturn|]^B[|endofturn|]^"},
      {"falcon", " A^ B^"},
      {"gemma", "A<end_of_turn>^B<end_of_turn>^"},
      {"gpt_oss", "<|channel|>final<|message|> A <|end|>^<|channel|>final<|message|>B<|return|>^"},
      {"granite", " A <|end_of_text|>^B<|end_of_text|>^"},
      {"llama2", " A </s>^ B </s>^"},
      {"llama3", "A<|eot_id|>^B<|eot_id|>^"},
      {"llama3.1", "A<|eot_id|>^B<|eot_id|>^"},
      {"mistral_v0.1", " A </s>^B</s>^"},
      {"mistral_v1", "  A </s>^ B</s>^"},
      {"mistral_v0.3", " A</s>^ B</s>^"},
      {"mistral_nemo", " A </s>^B</s>^"},
      {"olmo", " A </s>^B</s>^"},
      {"parts", " A </assistant>^B</assistant>^"},
      {"phi3", " A <|end|>^B<|end|>^"},
      {"phi4", " A <|im_end|>^B<|im_end|>^"},
      {"qwen2", " A <|im_end|>^B<|im_end|>^"},
      {"qwen3", " A <|im_end|>^<think>\n\n</think>\n\nB<|im_end|>^"},
      {"qwen3_instruct_2507", " A <|im_end|>^B<|im_end|>^"},
      {"vicuna", "  A </s>^ B</s>^"},
      {"zephyr", " A </s>^B</s>^"},
  }));
  CAPTURE(row.name);
  CHECK(answers_of(golden_template(row.name), two_answers()) == row.answers);
}

TEST_CASE("ChatTemplate: tool calls and thoughts are learned", "[data][chat]") {
  CHECK(answers_of(golden_template("hermes"), with_tools()) ==
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n"
        "</tool_call><|im_end|>^Warm.<|im_end|>^");
  CHECK(answers_of(golden_template("llama3.1"), with_tools()) ==
        "{\"name\": \"weather\", \"parameters\": {\"city\": \"Paris\"}}<|eot_id|>^"
        "Warm.<|eot_id|>^");
  CHECK(answers_of(golden_template("qwen3"), with_tools()) ==
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n"
        "</tool_call><|im_end|>^<think>\n\n</think>\n\nWarm.<|im_end|>^");
  // The token that begins calls is no header, and the name in the tool's turn is no answer.
  CHECK(answers_of(golden_template("mistral_v0.3"), with_tools()) ==
        "[TOOL_CALLS] [{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}, "
        "\"id\": \"abcdef012\"}]</s>^ Warm.</s>^");
  CHECK(answers_of(golden_template("gpt_oss"), with_tools()) ==
        " to=functions.weather<|channel|>commentary json<|message|>{\"city\": \"Paris\"}<|call|>^"
        "<|channel|>final<|message|>Warm.<|return|>^");
  ordered_json thinks = assistant("So.");
  thinks["reasoning_content"] = "Hm.";
  const Conversation thoughts = conversation({user("Why?"), thinks});
  CHECK(answers_of(golden_template("qwen3"), thoughts) ==
        "<think>\nHm.\n</think>\n\nSo.<|im_end|>^");
  CHECK(answers_of(golden_template("gpt_oss"), thoughts) ==
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>So."
        "<|return|>^");
  // The prompt of the template opens the thought.
  CHECK(answers_of(golden_template("deepseek_r1"), thoughts) ==
        "Hm.\n</think>\n\nSo.<｜end▁of▁sentence｜>^");
}

TEST_CASE("ChatTemplate: the header of a first answer is not learned", "[data][chat]") {
  const Conversation answer = conversation({assistant("Hi")});
  CHECK(answers_of(golden_template("llama3"), answer) == "Hi<|eot_id|>^");
  CHECK(answers_of(golden_template("qwen2"), answer) == "Hi<|im_end|>^");
}

TEST_CASE("ChatTemplate: of an empty answer its end is learned", "[data][chat]") {
  const Conversation silence = conversation({user("Hi"), assistant("")});
  CHECK(answers_of(golden_template("chatml"), silence) == "<|im_end|>^");
  CHECK(answers_of(golden_template("hermes"), silence) == "<|im_end|>^");
  CHECK(answers_of(golden_template("llama3"), silence) == "<|eot_id|>^");
}

TEST_CASE("ChatTemplate: answers that are not to be learned are not", "[data][chat]") {
  Conversation messages = two_answers();
  messages.learned = {true, false, true, true};
  const std::string name = GENERATE("chatml", "chatml_generation", "llama3", "mistral_nemo");
  CAPTURE(name);
  const std::string answers = answers_of(golden_template(name), messages);
  CHECK_THAT(answers, StartsWith("B<") && !ContainsSubstring("A"));
  messages.learned.assign(4, false);
  CHECK(answers_of(golden_template(name), messages).empty());
}

TEST_CASE("ChatTemplate: what the template marks as generated is learned", "[data][chat]") {
  const std::string jinja =
      "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{% generation %}"
      "{{ m.content }}{% endgeneration %}#{% else %}{{ m.content }}{% endif %}{% endfor %}";
  CHECK(answers_of(jinja, two_answers()) == " A ^B^");
  // Not by the role but by the mark.
  const std::string all =
      "{% for m in messages %}{% generation %}{{ m.content }}|{% endgeneration %}{% endfor %}";
  CHECK(answers_of(all, two_answers()) == "Hi|^ A |^?|^B|^");
  const std::string none = "{% if false %}{% generation %}{% endgeneration %}{% endif %}" + chatml;
  CHECK(answers_of(none, two_answers()).empty());
}

TEST_CASE("ChatTemplate: the header of a turn is not learned without a prompt", "[data][chat]") {
  CHECK(answers_of(chatml, two_answers()) == " A <|im_end|>^B<|im_end|>^");
}

TEST_CASE("ChatTemplate: what a template would silently drop is refused", "[data][chat]") {
  const std::string no_system =
      "{% for m in messages if m.role != 'system' %}{{ m.role + ':' + m.content }};{% endfor %}";
  const ordered_json system{{"role", "system"}, {"content", "Be brief."}};
  CHECK_THAT(text_of(no_system, conversation({system, user("Hi")})),
             StartsWith("error: messages[0] (system): the chat template leaves out this message"));
  const ordered_json empty{{"role", "system"}, {"content", ""}};
  CHECK(text_of(no_system, conversation({empty, user("Hi")})) == "user:Hi;");
  const std::string questions = "{% for m in messages[::2] %}{{ m.content }};{% endfor %}";
  CHECK_THAT(text_of(questions, conversation({user("Hi"), assistant("A")})),
             StartsWith("error: messages[1] (assistant): "));

  Conversation tools = conversation({user("Hi")}, with_list("tools", {{"type", "function"}}));
  CHECK(text_of(chatml, tools) == "error: tools: the chat template has no place for them");
  tools.variables["tools"] = ordered_json::array();
  CHECK(text_of(chatml, tools) == "<|im_start|>user\nHi<|im_end|>\n");
  const auto documents = conversation({user("Hi")}, with_list("documents", {{"text", "T"}}));
  CHECK(text_of(chatml, documents) == "error: documents: the chat template has no place for them");
  CHECK_THAT(text_of(chatml + "{# tools #}", with_tools()), StartsWith("error: tools: "));

  ordered_json thinks = assistant("So.");
  thinks["reasoning_content"] = "Hm.";
  CHECK_THAT(text_of(chatml, conversation({user("Why?"), thinks})),
             StartsWith("error: messages[1] (assistant): the chat template leaves out its "
                        "thoughts"));
  // Templates drop the thoughts of earlier answers, as the model does not see them then.
  CHECK_THAT(text_of(golden_template("qwen3"),
                     conversation({user("Why?"), thinks, user("?"), assistant("B")})),
             !ContainsSubstring("Hm.") && !StartsWith("error"));
  ordered_json call = assistant("A");
  call["tool_calls"] = calls_of_weather();
  CHECK_THAT(text_of(chatml, conversation({user("Hi"), call, user("?")})),
             StartsWith("error: messages[1] (assistant): the chat template leaves out its tool"));
}

TEST_CASE("ChatTemplate: the template's own errors are given", "[data][chat]") {
  const std::string jinja =
      "{% if messages[0].role != 'user' %}\n  {{ raise_exception('no ' + messages[0].role) }}\n"
      "{% endif %}{{ messages[0].content + 1 }}";
  CHECK(text_of(jinja, conversation({assistant("Hi")})) ==
        "error: the chat template says: no assistant");
  CHECK_THAT(text_of(jinja, conversation({user("Hi")})), StartsWith("error: line 3, column "));
  CHECK_THAT(text_of("a\n {% for %}", two_answers()), StartsWith("error: line 2, column "));
}

TEST_CASE("ChatTemplate: null is left out and thoughts have each of their names", "[data][chat]") {
  const std::string keys = "{{ messages[0].content }}|{{ messages[0].keys() | list | join(',') }}";
  ordered_json message = user("Hi");
  message["name"] = nullptr;
  CHECK(text_of(keys, conversation({message})) == "Hi|role,content");
  const std::string thoughts =
      "{{ messages[0].reasoning_content }}|{{ messages[0].thinking }}|"
      "{{ messages[0].keys() | sort | join(',') }}";
  const auto with = [](const std::string& key, const std::string& thought) {
    ordered_json made;
    made["role"] = "user";
    made[key] = thought;
    return made;
  };
  CHECK(text_of(thoughts, conversation({with("reasoning_content", "T")})) ==
        "T|T|reasoning_content,role,thinking");
  CHECK(text_of(thoughts, conversation({with("thinking", "T")})) ==
        "T|T|reasoning_content,role,thinking");
  CHECK(text_of(thoughts, conversation({with("reasoning", "T")})) ==
        "T|T|reasoning,reasoning_content,role,thinking");
  ordered_json both = with("thinking", "new");
  both["reasoning_content"] = "old";
  CHECK(text_of(thoughts, conversation({both})) == "old|new|reasoning_content,role,thinking");
  both["reasoning_content"] = nullptr;
  CHECK(text_of(thoughts, conversation({both})) == "new|new|reasoning_content,role,thinking");
  const ordered_json null{{"role", "user"}, {"content", nullptr}};
  CHECK(text_of("{{ messages[0].content is defined }}", conversation({null})) == "False");
}

TEST_CASE("ChatTemplate: variables of the record reach the template", "[data][chat]") {
  const std::string jinja =
      "{{ messages[0].content }}|{{ bos_token }}|{{ sep_token is defined }}|{{ tools is none }}|"
      "{{ add_generation_prompt }}|{{ enable_thinking | default('unset') }}";
  CHECK(text_of(jinja, conversation({user("Hi")})) == "Hi|<s>|False|True|False|unset");
  const ordered_json variables{
      {"enable_thinking", false}, {"bos_token", "<b>"}, {"add_generation_prompt", true}};
  CHECK(text_of(jinja, conversation({user("Hi")}, variables)) == "Hi|<b>|False|True|True|False");
  const ordered_json large{{"n", 18446744073709551615ULL}};
  CHECK_THAT(text_of(jinja + "{{ n }}", conversation({user("Hi")}, large)),
             ContainsSubstring("does not fit in 64 bits"));
}

TEST_CASE("ChatTemplate: the date is that of the options", "[data][chat]") {
  const std::string jinja = "{{ messages[0].content }} {{ strftime_now('%d %b %Y, %A, day %j') }}";
  const Conversation question = conversation({user("On")});
  CHECK(text_of(jinja, question) == "On 29 Nov 2026, Sunday, day 333");
  CHECK(text_of("{{ messages[0].content }}{{ strftime_now('') }}", question) == "On");
  CHECK_THAT(text_of("{{ strftime_now() }}", question), StartsWith("error: line 1, column "));
  const auto without = ChatTemplate::parse(jinja, token_texts);
  REQUIRE(without.ok());
  const auto refused = without.value().render(question, encoder());
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error(), ContainsSubstring("pass --chat_date YYYY-MM-DD"));
  // Only a conversation that needs it.
  const std::string sometimes =
      "{{ messages[0].content }}{{ strftime_now('%Y') if messages[0].content == 'now' }}";
  const auto chat = ChatTemplate::parse(sometimes, token_texts);
  CHECK(chat.value().render(question, encoder()).value().text == "On");
}

TEST_CASE("ChatTemplate: is found in a model's directory", "[data][chat]") {
  const ModelDirectory model;
  CHECK_THAT(model.load(), StartsWith(model.folder() + ": no chat template"));
  model.write("chat_template.json", ordered_json{{"chat_template", named("json")}}.dump());
  CHECK(model.load() == "json:Hi");
  model.write_config({{"chat_template", named("config")}});
  CHECK(model.load() == "config:Hi");
  model.write("chat_template.jinja", named("file"));
  CHECK(model.load() == "file:Hi");
}

TEST_CASE("ChatTemplate: the one named tool_use is for conversations with tools", "[data][chat]") {
  const ModelDirectory model;
  const ordered_json tools = with_list("tools", {{"type", "function"}});
  SECTION("in a list") {
    const ordered_json for_tools{{"name", "tool_use"}, {"template", named("tools")}};
    const ordered_json for_others{{"name", "default"}, {"template", named("default")}};
    model.write_config({{"chat_template", ordered_json::array({for_tools, for_others})}});
  }
  SECTION("in files") {
    model.write("additional_chat_templates/tool_use.jinja", named("tools"));
    model.write("additional_chat_templates/README.md", "{{");
    CHECK_THAT(model.load(), ContainsSubstring("\"default\""));
    model.write("chat_template.jinja", named("default"));
  }
  CHECK(model.load() == "default:Hi");
  CHECK(model.load(tools) == "tools:Hi");
  CHECK(model.load({{"tools", nullptr}}) == "default:Hi");
}

TEST_CASE("ChatTemplate: files of a model name its special tokens", "[data][chat]") {
  const ModelDirectory model;
  model.write("chat_template.jinja",
              "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ pad_token is defined }}");
  model.write("special_tokens_map.json", R"({"bos_token": {"content": "<m>"}})");
  CHECK(model.load() == "<m>HiFalse");
  model.write_config({{"bos_token", "<a>"}, {"eos_token", {{"content", "<z>"}, {"lstrip", true}}}});
  CHECK(model.load() == "<a>Hi<z>False");
  model.write_config({{"eos_token", "<z>"}, {"added_tokens_decoder", ordered_json::object()}});
  CHECK(model.load() == "Hi<z>False");
}

TEST_CASE("ChatTemplate: a broken file of a model is named with the place", "[data][chat]") {
  const ModelDirectory model;
  const std::string config = model.folder() + "/tokenizer_config.json: ";
  model.write_config({{"chat_template", "a\n{{ b"}});
  CHECK_THAT(model.load(), StartsWith(config + "chat_template: line 2, column "));
  model.write_config(with_list("chat_template", {{"name", "default"}, {"template", "{% x %}"}}));
  CHECK_THAT(model.load(), StartsWith(config + "chat_template: default: line 1, column 1: "));
  model.write_config(with_list("chat_template", {{"name", "default"}}));
  CHECK_THAT(model.load(), StartsWith(config + "chat_template: "));
  model.write_config({{"chat_template", 5}});
  CHECK_THAT(model.load(), StartsWith(config + "chat_template: "));
  model.write_config({{"chat_template", nullptr}});
  CHECK_THAT(model.load(), StartsWith(model.folder() + ": no chat template"));
  model.write_config(with_list("chat_template", {{"name", "rag"}, {"template", "x"}}));
  CHECK_THAT(model.load(), StartsWith(model.folder() + ": none of its chat templates"));
  model.write("tokenizer_config.json", "{");
  CHECK_THAT(model.load(), StartsWith(model.folder() + "/tokenizer_config.json: "));
  model.write_config(ordered_json::object());
  model.write("chat_template.jinja", "\n\n  {% if %}{% endif %}");
  CHECK_THAT(model.load(), StartsWith(model.folder() + "/chat_template.jinja: line 3, column "));
  model.write("chat_template.jinja", "{{ messages[0].content }}\n{{ messages.x.y }}");
  CHECK_THAT(model.load(), StartsWith(model.folder() + "/chat_template.jinja: line 2, column "));
  model.write("chat_template.jinja", "\xff");
  CHECK_THAT(model.load(), StartsWith(model.folder() + "/chat_template.jinja: "));
}

TEST_CASE("ChatTemplate: no template runs without end", "[data][chat]") {
  struct Row {
    std::string jinja;
    std::string error;
  };
  const Row row = GENERATE(values<Row>({
      {"{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}",
       "the template runs too long"},
      {"{% for a in range(90000) %}{{ range(90000) | list | length }}{% endfor %}",
       "the template runs too long"},
      {"{{ 'x' * 10 ** 9 }}", "the template makes too much text"},
      {"{{ ('x' * 10 ** 6) | replace('x', 'y' * 10 ** 6) }}", "the template makes too much text"},
      {"{{ 'x' | center(10 ** 12) }}", "the template makes too much text"},
      {"{{ [0] * 10 ** 12 }}", "the template runs too long"},
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "the template calls itself too deeply"},
      {"{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
       "the template calls itself too deeply"},
      {"{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}"
       "{% endfor %}{{ ns.x }}",
       "lists are nested deeper"},
      {"{% set ns = namespace(x=['a']) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
       "{% endfor %}{{ ns.x }}",
       "the template makes too much text"},
      {"{% set ns = namespace(x=['a']) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
       "{% endfor %}{{ ns.x | tojson }}",
       "the template makes too much text"},
      {"{% set ns = namespace(x=['a'], y=['a']) %}{% for i in range(60) %}"
       "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
       "the template runs too long"},
      {"{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}"
       "{% endfor %}",
       "the template makes too much text"},
      {"{{ '%1000000000d' % 1 }}", "a width or precision is too large"},
  }));
  CAPTURE(row.jinja);
  CHECK_THAT(text_of(row.jinja, two_answers()), ContainsSubstring(row.error));
}

TEST_CASE("ChatTemplate: a namespace that holds itself does no harm", "[data][chat]") {
  const std::string content = "{{ messages | map(attribute='content') | join }}";
  const std::string jinja = "{% set ns = namespace() %}{% set ns.x = [ns, ns] %}" + content;
  CHECK(text_of(jinja, two_answers()) == "Hi A ?B");
  CHECK_THAT(text_of(jinja + "{{ ns.x == ns.x }}", two_answers()), StartsWith("Hi A ?BTrue"));
}

TEST_CASE("ChatTemplate: a large template is text or an error", "[data][chat]") {
  const Conversation question = conversation({user("Hi")});
  const std::string content = "{{ messages[0].content }}";
  const std::string plain(mebibyte - content.size(), 'x');
  CHECK(text_of(content + plain, question) == "Hi" + plain);
  CHECK(text_of(std::string(mebibyte + 1, 'x'), question) ==
        "error: the template is larger than 1 MiB");
  const std::string list = "{{ [" + repeated("1,", 100'000) + "] | length }}";
  CHECK(text_of(content + list, question) == "Hi100000");
  CHECK(text_of(content + repeated("{# a #}", 40'000), question) == "Hi");
  CHECK(text_of(content + repeated("{{ 1 }}", 40'000), question) == "Hi" + repeated("1", 40'000));
  CHECK(text_of(content + "{% if no %}" + repeated("{% elif no %}", 20'000) + "{% endif %}",
                question) == "Hi");
}

TEST_CASE("ChatTemplate: deeply nested expressions are refused", "[data][chat]") {
  const std::string open = GENERATE("(", "[", "{1:", "-", "not ", "x[", "x(", "x|f(", "a.b+(",
                                    "1 if ", "1 if 1 else ", "'' ~ (", "1 < (");
  CAPTURE(open);
  const std::size_t bytes = open == "(" || open == "[" ? 1'000'000 : 100'000;
  CHECK_THAT(text_of("{{ " + repeated(open, bytes / open.size()), conversation({user("Hi")})),
             StartsWith("error: line 1, column "));
  const std::string whole = "{{ " + repeated(open, 2000) + "1" + repeated(")", 2000) + " }}";
  CHECK_THAT(text_of(whole, conversation({user("Hi")})), StartsWith("error: line 1, column "));
}

TEST_CASE("ChatTemplate: long chains of operators are text or an error", "[data][chat]") {
  const std::string part = GENERATE(" + 1", " ~ 1", " | e", ".a", "[0]", " and 1", " * 2", "()",
                                    " < 2", " == 1", " if 1", " ** 1", " or 0");
  CAPTURE(part);
  const std::string chain = "{{ 1" + repeated(part, 50'000) + " }}";
  CHECK_THAT(text_of("{{ messages[0].content }}" + chain, conversation({user("Hi")})),
             StartsWith("error: line 1, column ") || StartsWith("Hi"));
}

TEST_CASE("ChatTemplate: deeply nested tags are refused", "[data][chat]") {
  const std::string open =
      GENERATE("{% if 1 %}", "{% for a in b %}", "{% set a %}", "{% with %}", "{% macro m() %}",
               "{% filter e %}", "{% call m() %}", "{% generation %}", "{% if 1 %}{% else %}");
  CAPTURE(open);
  CHECK_THAT(text_of(repeated(open, 10'000), conversation({user("Hi")})),
             StartsWith("error: line 1, column "));
}

TEST_CASE("ChatTemplate: the files of additional templates are sorted", "[data][chat]") {
  const ModelDirectory model;
  CHECK(data::additional_chat_templates(model.folder()).empty());
  model.write("additional_chat_templates/rag.jinja", "x");
  model.write("additional_chat_templates/a.jinja", "x");
  model.write("additional_chat_templates/notes.txt", "x");
  const auto files = data::additional_chat_templates(model.folder());
  REQUIRE(files.size() == 2);
  CHECK(files.front().filename() == "a.jinja");
  CHECK(files.back().filename() == "rag.jinja");
}

}  // namespace dstrain::test
