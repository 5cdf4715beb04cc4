#include "runtime/data/chat_template.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include <nlohmann/json.hpp>

#include "runtime/data/jinja_text.h"
#include "runtime/os/file.h"
#include "tests/data/token_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using data::ChatDetails;
using data::ChatTemplate;
using data::Message;
using data::RenderedChat;
using nlohmann::json;

const std::string chatml =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}";

json golden_chats() {
  const std::filesystem::path path = std::filesystem::path(DSTRAIN_SOURCE_DIR) / "tests/golden";
  return json::parse(read_text_file(path / "chats.json", mebibyte));
}

std::vector<Message> messages_of(const json& list) {
  std::vector<Message> messages;
  for (const json& item : list) messages.push_back({item.at("role"), item.at("content")});
  return messages;
}

/// The style of each template that make_chats.py renders.
std::map<std::string, std::pair<data::ChatStyle, ChatDetails>> styles() {
  const ChatDetails plain{.bos = "<s>", .eos = "</s>", .system = {}, .after_turn = {}};
  const auto with = [&](const std::string& system, const std::string& after_turn) {
    ChatDetails details = plain;
    details.system = system;
    details.after_turn = after_turn;
    return details;
  };
  return {{"llama2", {data::render_llama2, plain}},
          {"llama3", {data::render_llama3, plain}},
          {"llama3.1", {data::render_llama3_1, plain}},
          {"llama3.3", {data::render_llama3_1, plain}},
          {"mistral_v0.1", {data::render_mistral, with("", " ")}},
          {"mistral_v0.2", {data::render_mistral, plain}},
          {"mistral_v1", {data::render_mistral_v1, plain}},
          {"mistral_v0.3", {data::render_mistral_v3, plain}},
          {"mistral_nemo", {data::render_mistral_nemo, plain}},
          {"qwen2", {data::render_chatml, with("You are a helpful assistant.", "")}},
          {"qwen2.5",
           {data::render_qwen2_5,
            with("You are Qwen, created by Alibaba Cloud. You are a helpful assistant.", "")}},
          {"qwen3_first", {data::render_qwen3, with("", "\n")}},
          {"qwen3", {data::render_qwen3, with("", "\n")}},
          {"qwen3_instruct_2507", {data::render_qwen2_5, plain}},
          {"chatml", {data::render_chatml, plain}},
          {"smollm2",
           {data::render_chatml,
            with("You are a helpful AI assistant named SmolLM, trained by Hugging Face", "")}}};
}

/// What differs from the golden rendering, or "".
std::string difference(const Result<RenderedChat>& found, const json& golden) {
  if (golden.contains("error")) {
    const std::string expected =
        "messages: the chat template says: " + golden.at("error").get<std::string>();
    return !found.ok() && found.error() == expected ? "" : "an error is missing";
  }
  if (!found.ok()) {
    // Templates leave out a system message in an answer's place (Llama 2) or in a conversation that
    // ends with an answer (Mistral); this is refused.
    return found.error().find("has no meaning") != std::string::npos ? "" : found.error();
  }
  return found.value().text == golden.at("text").get<std::string>() ? "" : found.value().text;
}

std::string answers_of(const RenderedChat& chat) {
  std::string text;
  for (const auto& [begin, end] : chat.answers) text += chat.text.substr(begin, end - begin) + "^";
  return text;
}

std::string refusal(const std::string& jinja) {
  const auto found = ChatTemplate::recognise(jinja, {"<s>", "</s>"});
  return found.ok() ? "" : found.error();
}

}  // namespace

TEST_CASE("ChatTemplate: renderings equal those of transformers", "[data][chat]") {
  const json golden = golden_chats();
  REQUIRE(golden.at("cases").size() == 44);
  for (const auto& [name, style] : styles()) {
    for (const json& item : golden.at("cases")) {
      const auto messages = messages_of(item.at("messages"));
      CAPTURE(name, item.at("messages").dump());
      CHECK(difference(style.first(messages, style.second), item.at("rendered").at(name)) == "");
    }
  }
}

TEST_CASE("ChatTemplate: published templates are recognised where they are given", "[data][chat]") {
  const char* const folder = std::getenv("DSTRAIN_CHAT_TEMPLATES");
  const json golden = golden_chats();
  for (const auto& [name, style] : styles()) {
    if (folder == nullptr) continue;
    const auto jinja = read_text_file(std::filesystem::path(folder) / (name + ".jinja"), mebibyte);
    const auto found = ChatTemplate::recognise(jinja, {"<s>", "</s>"});
    CAPTURE(name, data::plain_jinja(jinja));
    REQUIRE(found.ok());
    for (const json& item : golden.at("cases")) {
      const auto messages = messages_of(item.at("messages"));
      CHECK(difference(found.value().render(messages), item.at("rendered").at(name)) == "");
    }
  }
}

TEST_CASE("ChatTemplate: the model's own text counts as answers", "[data][chat]") {
  const std::vector<Message> chat{
      {"user", "Hi"}, {"assistant", " A "}, {"user", "?"}, {"assistant", "B"}};
  struct Row {
    std::string name;
    std::string answers;
  };
  const Row row =
      GENERATE(values<Row>({{"llama2", " A </s>^ B </s>^"},
                            {"llama3", "A<|eot_id|>^B<|eot_id|>^"},
                            {"llama3.1", "A<|eot_id|>^B<|eot_id|>^"},
                            {"mistral_v0.1", " A </s>^B</s>^"},
                            {"mistral_v1", "  A </s>^ B</s>^"},
                            {"mistral_v0.3", " A</s>^ B</s>^"},
                            {"mistral_nemo", " A </s>^B</s>^"},
                            {"qwen3_instruct_2507", " A <|im_end|>^B<|im_end|>^"},
                            {"qwen2", " A <|im_end|>^B<|im_end|>^"},
                            {"qwen3", " A <|im_end|>^<think>\n\n</think>\n\nB<|im_end|>^"},
                            {"chatml", " A <|im_end|>^B<|im_end|>^"}}));
  CAPTURE(row.name);
  const auto [style, details] = styles().at(row.name);
  const auto rendered = style(chat, details);
  REQUIRE(rendered.ok());
  CHECK(answers_of(rendered.value()) == row.answers);
}

TEST_CASE("ChatTemplate: roles without a meaning are refused", "[data][chat]") {
  const std::vector<Message> chat{{"user", "Hi"}, {"tool", "{}"}};
  for (const std::string name : {"llama2", "llama3.1", "mistral_v0.3", "mistral_nemo", "qwen2.5",
                                 "qwen3", "qwen3_instruct_2507"}) {
    CAPTURE(name);
    const auto [style, details] = styles().at(name);
    const auto rendered = style(chat, details);
    REQUIRE_FALSE(rendered.ok());
    CHECK(rendered.error() ==
          "messages[1].role is 'tool', which has no meaning in the chat template; known are "
          "system, user and assistant");
  }
}

TEST_CASE("ChatTemplate: formatting does not matter but content does", "[data][chat]") {
  const auto name_of = [](const std::string& jinja) {
    const auto found = ChatTemplate::recognise(jinja, {});
    return found.ok() ? std::string(found.value().name()) : "";
  };
  CHECK(name_of(chatml) == "ChatML");
  CHECK(name_of(chatml +
                "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}") ==
        "ChatML");
  CHECK(name_of("{#- ours -#}\n{%- for message in messages -%}\n  {{- \"<|im_start|>\" + "
                "message[\"role\"] + \"\\n\" + message[\"content\"] + '<|im_end|>' + '\\n' -}}\n"
                "{%- endfor -%}\n") == "ChatML");
  const std::string qwen2 =
      "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
      "{{ '<|im_start|>system\nBe nice.<|im_end|>\n' }}{% endif %}" +
      chatml.substr(chatml.find("{{"));
  const auto found = ChatTemplate::recognise(qwen2, {});
  REQUIRE(found.ok());
  CHECK(found.value().name() == "Qwen 2");
  const std::vector<Message> chat{{"user", "Hi"}};
  CHECK(found.value().render(chat).value().text ==
        "<|im_start|>system\nBe nice.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n");
  CHECK_THAT(refusal(chatml + " "), Catch::Matchers::StartsWith("unknown chat template"));
  CHECK_THAT(refusal("{{ strftime_now('%d') }}"),
             Catch::Matchers::ContainsSubstring("the day's date"));
  CHECK_THAT(refusal(""),
             Catch::Matchers::ContainsSubstring("Llama 2, Llama 3, Llama 3.1, Mistral"));
}

TEST_CASE("ChatTemplate: is found in a model's directory", "[data][chat]") {
  const TempDir directory;
  const auto load = [&] {
    const auto found = ChatTemplate::load(directory.path());
    return found.ok() ? std::string(found.value().name()) : found.error();
  };
  const auto write_config = [&](const json& config) {
    write_file(directory.path() / "tokenizer_config.json", config.dump());
  };
  const std::string folder = directory.path().string();
  CHECK_THAT(load(), Catch::Matchers::StartsWith(folder + ": no chat template"));
  write_config({{"chat_template", chatml}});
  CHECK(load() == "ChatML");
  write_config({{"chat_template", json::array({{{"name", "tool_use"}, {"template", "x"}},
                                               {{"name", "default"}, {"template", chatml}}})}});
  CHECK(load() == "ChatML");
  write_config({{"chat_template", json::array({3})}});
  CHECK_THAT(load(), Catch::Matchers::StartsWith(folder + ": no chat template"));
  write_config({{"chat_template", "{{ bos_token }}"}});
  CHECK_THAT(load(), Catch::Matchers::StartsWith(folder + ": unknown chat template"));
  write_file(directory.path() / "chat_template.jinja", chatml);
  CHECK(load() == "ChatML");
  write_file(directory.path() / "tokenizer_config.json", "{");
  CHECK_THAT(load(), Catch::Matchers::StartsWith(folder + "/tokenizer_config.json: "));
}

TEST_CASE("ChatTemplate: a template needs the tokens that it names", "[data][chat]") {
  const std::string jinja =
      "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != "
      "(loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate "
      "user/assistant/user/assistant/...') }}{% endif %}{% if message['role'] == 'user' %}"
      "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
      "{{ message['content'] + eos_token}}{% else %}{{ raise_exception('Only user and assistant "
      "roles are supported!') }}{% endif %}{% endfor %}";
  CHECK(ChatTemplate::recognise(jinja, {"<s>", "</s>"}).ok());
  CHECK(ChatTemplate::recognise(jinja, {"", "</s>"}).error() ==
        "the chat template names bos_token, and the tokenizer has none");
  CHECK(ChatTemplate::recognise(jinja, {"<s>", ""}).error() ==
        "the chat template names eos_token, and the tokenizer has none");
}

TEST_CASE("JinjaText: text without effect is removed", "[data][chat]") {
  struct Row {
    std::string jinja;
    std::string plain;
  };
  const Row row = GENERATE(values<Row>({
      {"{{ a }}", "{{a}}"},
      {"{{- \"a b\" -}} \n x", "{{'a b'}}x"},
      {" {{ a }} ", " {{a}} "},
      {"{% if a and b %}\n  {% endif %}\n", "{%if a and b%}{%endif%}"},
      {"x\n  {% if a %}y", "x\n{%if a%}y"},
      {"x  {% if a %}y", "x  {%if a%}y"},
      {"x {#- words #} \n{{ b }}", "x \n{{b}}"},
      {"{{ 'a\nb' + \"it\\\"s }}\" }}", "{{'a\\nb'+'it\\\"s }}'}}"},
      {"{{ a", "{{ a"},
      {"{ {", "{ {"},
      {"", ""},
      {"{{", "{{"},
  }));
  CAPTURE(row.jinja);
  CHECK(data::plain_jinja(row.jinja) == row.plain);
}

}  // namespace dstrain::test
