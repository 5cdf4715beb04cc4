#include "runtime/data/chat_template.h"

#include <array>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/exception_text.h"
#include "runtime/base/json_text.h"
#include "runtime/data/jinja_text.h"
#include "runtime/os/file.h"

namespace dstrain::data {
namespace {

using nlohmann::json;

constexpr Bytes template_bytes_max = mebibyte;

// Templates in the form of plain_jinja(). Some are whole; of those with tools, the parts that
// render messages without tools.

constexpr std::string_view llama2 =
    "{%if messages[0]['role']=='system'%}{%set loop_messages=messages[1:]%}"
    "{%set system_message=messages[0]['content']%}{%else%}{%set loop_messages=messages%}"
    "{%set system_message=false%}{%endif%}{%for message in loop_messages%}"
    "{%if(message['role']=='user')!=(loop.index0%2==0)%}"
    "{{raise_exception('Conversation roles must alternate user/assistant/user/assistant/...')}}"
    "{%endif%}{%if loop.index0==0 and system_message!=false%}"
    "{%set content='<<SYS>>\\n'+system_message+'\\n<</SYS>>\\n\\n'+message['content']%}{%else%}"
    "{%set content=message['content']%}{%endif%}{%if message['role']=='user'%}"
    "{{bos_token+'[INST] '+content.strip()+' [/INST]'}}{%elif message['role']=='assistant'%}"
    "{{' '+content.strip()+' '+eos_token}}{%endif%}{%endfor%}";

constexpr std::string_view mistral_begin =
    "{{bos_token}}{%for message in messages%}"
    "{%if(message['role']=='user')!=(loop.index0%2==0)%}"
    "{{raise_exception('Conversation roles must alternate user/assistant/user/assistant/...')}}"
    "{%endif%}{%if message['role']=='user'%}{{'[INST] '+message['content']+' [/INST]'}}"
    "{%elif message['role']=='assistant'%}{{message['content']+eos_token";
constexpr std::string_view mistral_end =
    "}}{%else%}"
    "{{raise_exception('Only user and assistant roles are supported!')}}{%endif%}{%endfor%}";

/// For its first tokenizer, in the later version with system messages.
constexpr std::string_view mistral_v1 =
    "{%if messages[0]['role']=='system'%}{%set system_message=messages[0]['content']%}"
    "{%set loop_messages=messages[1:]%}{%else%}{%set loop_messages=messages%}{%endif%}{{bos_token}}"
    "{%for message in loop_messages%}{%if(message['role']=='user')!=(loop.index0%2==0)%}"
    "{{raise_exception('After the optional system message, conversation roles must alternate "
    "user/assistant/user/assistant/...')}}{%endif%}{%if message['role']=='user'%}"
    "{%if loop.first and system_message is defined%}"
    "{{' [INST] '+system_message+'\\n\\n'+message['content']+' [/INST]'}}{%else%}"
    "{{' [INST] '+message['content']+' [/INST]'}}{%endif%}{%elif message['role']=='assistant'%}"
    "{{' '+message['content']+eos_token}}{%else%}"
    "{{raise_exception('Only user and assistant roles are supported, with the exception of an "
    "initial optional system message!')}}{%endif%}{%endfor%}";

/// For Mistral's third tokenizer, without questions and answers, which differ for Tekken.
constexpr std::array<std::string_view, 5> mistral_v3{
    "{%if messages[0]['role']=='system'%}{%set system_message=messages[0]['content']%}"
    "{%set loop_messages=messages[1:]%}{%else%}{%set loop_messages=messages%}{%endif%}"
    "{%if not tools is defined%}{%set tools=none%}{%endif%}",
    "{%for message in loop_messages%}{%if not(message.role=='tool'or message.role=='tool_results'or"
    "(message.tool_calls is defined and message.tool_calls is not none))%}"
    "{%if(message['role']=='user')!=(ns.index%2==0)%}"
    "{{raise_exception('After the optional system message, conversation roles must alternate "
    "user/assistant/user/assistant/...')}}{%endif%}{%set ns.index=ns.index+1%}{%endif%}{%endfor%}"
    "{{bos_token}}{%for message in loop_messages%}{%if message['role']=='user'%}"
    "{%if tools is not none and(message==user_messages[-1])%}",
    "{%endif%}{%if loop.last and system_message is defined%}",
    "{%elif message['role']=='assistant'%}",
    "{%else%}{{raise_exception('Only user and assistant roles are supported, with the exception of "
    "an initial optional system message!')}}{%endif%}{%endfor%}"};
struct MistralTurns {
  std::string_view question;
  std::string_view answer;
};
constexpr MistralTurns mistral_v3_turns{
    "{{'[INST] '+system_message+'\\n\\n'+message['content']+'[/INST]'}}{%else%}"
    "{{'[INST] '+message['content']+'[/INST]'}}{%endif%}{%elif",
    "{{' '+message['content']|trim+eos_token}}{%elif"};
constexpr MistralTurns mistral_nemo_turns{
    "{{'[INST]'+system_message+'\\n\\n'+message['content']+'[/INST]'}}{%else%}"
    "{{'[INST]'+message['content']+'[/INST]'}}{%endif%}{%elif",
    "{{message['content']+eos_token}}{%elif"};

constexpr std::string_view llama3 =
    "{%set loop_messages=messages%}{%for message in loop_messages%}"
    "{%set content='<|start_header_id|>'+message['role']+'<|end_header_id|>\\n\\n'"
    "+message['content']|trim+'<|eot_id|>'%}{%if loop.index0==0%}"
    "{%set content=bos_token+content%}{%endif%}{{content}}{%endfor%}"
    "{%if add_generation_prompt%}{{'<|start_header_id|>assistant<|end_header_id|>\\n\\n'}}"
    "{%endif%}";

constexpr std::array<std::string_view, 6> llama3_1{
    "{{bos_token}}{%if custom_tools is defined%}",
    "{%if not date_string is defined%}{%set date_string='26 Jul 2024'%}{%endif%}",
    "{%if messages[0]['role']=='system'%}{%set system_message=messages[0]['content']|trim%}"
    "{%set messages=messages[1:]%}{%else%}{%set system_message=''%}{%endif%}"
    "{{'<|start_header_id|>system<|end_header_id|>\\n\\n'}}"
    "{%if builtin_tools is defined or tools is not none%}{{'Environment: ipython\\n'}}{%endif%}",
    "{{'Cutting Knowledge Date: December 2023\\n'}}{{'Today Date: '+date_string+'\\n\\n'}}",
    "{{system_message}}{{'<|eot_id|>'}}",
    "{%for message in messages%}"
    "{%if not(message.role=='ipython'or message.role=='tool'or'tool_calls'in message)%}"
    "{{'<|start_header_id|>'+message['role']+'<|end_header_id|>\\n\\n'+message['content']|trim+"
    "'<|eot_id|>'}}{%elif"};
constexpr std::string_view generation_default =
    "{%if not add_generation_prompt is defined%}{%set add_generation_prompt=false%}{%endif%}";
constexpr std::string_view chatml_begin = "{%for message in messages%}";
constexpr std::string_view chatml_turn =
    "{{'<|im_start|>'+message['role']+'\\n'+message['content']+'<|im_end|>'+'\\n'}}{%endfor%}";
constexpr std::string_view chatml_prompt =
    "{%if add_generation_prompt%}{{'<|im_start|>assistant\\n'}}{%endif%}";
constexpr std::string_view qwen2_begin =
    "{%for message in messages%}{%if loop.first and messages[0]['role']!='system'%}"
    "{{'<|im_start|>system\\n";
constexpr std::string_view qwen2_end = "<|im_end|>\\n'}}{%endif%}";

constexpr std::string_view qwen2_5_begin =
    "{%else%}{%if messages[0]['role']=='system'%}"
    "{{'<|im_start|>system\\n'+messages[0]['content']+'<|im_end|>\\n'}}{%else%}"
    "{{'<|im_start|>system\\n";
constexpr std::string_view qwen2_5_end =
    "<|im_end|>\\n'}}{%endif%}{%endif%}{%for message in messages%}"
    "{%if(message.role=='user')or(message.role=='system'and not loop.first)or"
    "(message.role=='assistant'and not message.tool_calls)%}"
    "{{'<|im_start|>'+message.role+'\\n'+message.content+'<|im_end|>'+'\\n'}}{%elif";

/// For the non-thinking Qwen 3 models.
constexpr std::array<std::string_view, 2> qwen3_instruct{
    "{%else%}{%if messages[0].role=='system'%}"
    "{{'<|im_start|>system\\n'+messages[0].content+'<|im_end|>\\n'}}{%endif%}{%endif%}"
    "{%for message in messages%}{%if message.content is string%}{%set content=message.content%}"
    "{%else%}{%set content=''%}{%endif%}"
    "{%if(message.role=='user')or(message.role=='system'and not loop.first)%}"
    "{{'<|im_start|>'+message.role+'\\n'+content+'<|im_end|>'+'\\n'}}"
    "{%elif message.role=='assistant'%}{{'<|im_start|>'+message.role+'\\n'+content}}"
    "{%if message.tool_calls%}",
    "{{'<|im_end|>\\n'}}{%elif message.role=='tool'%}"};

constexpr std::array<std::string_view, 4> qwen3{
    "{%else%}{%if messages[0].role=='system'%}"
    "{{'<|im_start|>system\\n'+messages[0].content+'<|im_end|>\\n'}}{%endif%}{%endif%}"
    "{%set ns=namespace(multi_step_tool=true,last_query_index=messages|length-1)%}",
    "not(message.content.startswith('<tool_response>')and"
    " message.content.endswith('</tool_response>'))%}{%set ns.multi_step_tool=false%}"
    "{%set ns.last_query_index=index%}{%endif%}{%endfor%}",
    ".split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n')%}",
    "{%if loop.index0>ns.last_query_index%}{%if loop.last or(not loop.last and reasoning_content)%}"
    "{{'<|im_start|>'+message.role+'\\n<think>\\n'+reasoning_content.strip('\\n')+"
    "'\\n</think>\\n\\n'+content.lstrip('\\n')}}{%else%}"
    "{{'<|im_start|>'+message.role+'\\n'+content}}{%endif%}{%else%}"
    "{{'<|im_start|>'+message.role+'\\n'+content}}{%endif%}"};

/// Whether the text has the parts in this order, with anything between them.
bool holds(std::string_view text, std::span<const std::string_view> parts) {
  for (const std::string_view part : parts) {
    const std::size_t at = text.find(part);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + part.size());
  }
  return true;
}

bool is_mistral_v3(std::string_view text, const MistralTurns& turns) {
  const auto& [system, alternation, last, answers, end] = mistral_v3;
  const std::string question = std::string(last) + std::string(turns.question);
  const std::string answer = std::string(answers) + std::string(turns.answer);
  return holds(text, std::array<std::string_view, 5>{system, alternation, question, answer, end});
}

/// Returns a default system message from the inside of a string. Only two escapes are known. An
/// empty message would have to be written too, so it is rejected.
std::optional<std::string> system_in(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      plain += text[i];
    } else if (++i < text.size() && (text[i] == 'n' || text[i] == '\\')) {
      plain += text[i] == 'n' ? '\n' : '\\';
    } else {
      return std::nullopt;
    }
  }
  if (plain.empty()) return std::nullopt;
  return plain;
}

/// Returns the default system message, from a string between `begin` and `end`.
std::optional<std::string> system_between(std::string_view text,
                                          std::string_view begin,
                                          std::string_view end) {
  const std::size_t at = text.find(begin);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + begin.size());
  const std::string_view system = rest.substr(0, rest.find('\''));
  // `end` starts with the closing quote.
  const std::size_t quote = end.find('\'');
  if (system.size() < quote || !rest.substr(system.size() - quote).starts_with(end)) {
    return std::nullopt;
  }
  return system_in(system.substr(0, system.size() - quote));
}

/// Returns the text without the given begin and end.
std::optional<std::string_view> inside(std::string_view text,
                                       std::string_view begin,
                                       std::string_view end) {
  const std::size_t ends = begin.size() + end.size();
  if (text.size() < ends || !text.starts_with(begin) || !text.ends_with(end)) return std::nullopt;
  return text.substr(begin.size(), text.size() - ends);
}

/// Returns the system message of ChatML, or of Qwen 2's with its own: the text between these ends.
std::optional<std::string> chatml_system(std::string_view text) {
  if (text.starts_with(generation_default)) text.remove_prefix(generation_default.size());
  if (text.ends_with(chatml_prompt)) text.remove_suffix(chatml_prompt.size());
  const std::string plain = std::string(chatml_begin) + std::string(chatml_turn);
  if (text == plain) return "";
  const auto system = inside(text, qwen2_begin, std::string(qwen2_end) + std::string(chatml_turn));
  // A quote would end the string, so this is not all of it.
  if (!system || system->find('\'') != std::string_view::npos) return std::nullopt;
  return system_in(*system);
}

struct Found {
  std::string_view name;
  ChatStyle style;
  std::string system{};
  std::string after_turn{};
};

std::optional<Found> find_style(const std::string& text) {
  if (text == llama2) return Found{"Llama 2", render_llama2};
  if (text == llama3) return Found{"Llama 3", render_llama3};
  const auto after_answer = inside(text, mistral_begin, mistral_end);
  if (after_answer == "") return Found{"Mistral", render_mistral};
  if (after_answer == "+' '") return Found{"Mistral", render_mistral, "", " "};
  if (text == mistral_v1) return Found{"Mistral", render_mistral_v1};
  if (is_mistral_v3(text, mistral_v3_turns)) return Found{"Mistral v0.3", render_mistral_v3};
  if (is_mistral_v3(text, mistral_nemo_turns)) return Found{"Mistral Nemo", render_mistral_nemo};
  if (const auto system = chatml_system(text)) {
    return Found{system->empty() ? "ChatML" : "Qwen 2", render_chatml, *system};
  }
  if (text.starts_with("{%if tools%}")) {
    if (const auto system = system_between(text, qwen2_5_begin, qwen2_5_end)) {
      return Found{"Qwen 2.5", render_qwen2_5, *system};
    }
    if (holds(text, qwen3)) return Found{"Qwen 3", render_qwen3, "", "\n"};
    if (holds(text, qwen3_instruct)) return Found{"Qwen 3 Instruct", render_qwen2_5};
  }
  if (holds(text, llama3_1)) return Found{"Llama 3.1", render_llama3_1};
  return std::nullopt;
}

Failure unknown(std::string_view jinja) {
  if (jinja.find("strftime_now") != std::string_view::npos) {
    return Failure{
        "the chat template writes the day's date into every conversation, so each day has other "
        "tokens; use one with a fixed date"};
  }
  return Failure{
      "unknown chat template; known are Llama 2, Llama 3, Llama 3.1, Mistral (instruct v0.1 to "
      "v0.3, Nemo), Qwen 2, Qwen 2.5, Qwen 3 and ChatML as they were published; put one of them "
      "into chat_template of tokenizer_config.json, or give the records as prompt and completion"};
}

/// Returns the text of a special token in tokenizer_config.json: a string, or the "content" of an
/// object.
std::string token_text(const json& config, const char* key) {
  const auto field = config.find(key);
  if (field == config.end()) return "";
  if (field->is_string()) return field->get<std::string>();
  if (field->is_object() && field->contains("content") && field->at("content").is_string()) {
    return field->at("content").get<std::string>();
  }
  return "";
}

/// Returns "chat_template": a text, or one of a list of named ones.
std::optional<std::string> template_text(const json& config) {
  const auto field = config.find("chat_template");
  if (field == config.end()) return std::nullopt;
  if (field->is_string()) return field->get<std::string>();
  if (!field->is_array()) return std::nullopt;
  for (const json& item : *field) {
    if (item.is_object() && item.value("name", json()) == "default" && item.contains("template") &&
        item.at("template").is_string()) {
      return item.at("template").get<std::string>();
    }
  }
  return std::nullopt;
}

}  // namespace

Result<ChatTemplate> ChatTemplate::recognise(std::string_view jinja,
                                             const SpecialTokenTexts& tokens) {
  std::optional<Found> found = find_style(plain_jinja(jinja));
  if (!found) return unknown(jinja);
  const bool needs_bos = jinja.find("bos_token") != std::string_view::npos;
  const bool needs_eos = jinja.find("eos_token") != std::string_view::npos;
  if ((needs_bos && tokens.bos.empty()) || (needs_eos && tokens.eos.empty())) {
    return Failure{fmt::format("the chat template names {}, and the tokenizer has none",
                               needs_bos && tokens.bos.empty() ? "bos_token" : "eos_token")};
  }
  return ChatTemplate(
      found->name, found->style,
      {tokens.bos, tokens.eos, std::move(found->system), std::move(found->after_turn)});
}

Result<ChatTemplate> ChatTemplate::load(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "chat_template.jinja";
  const std::filesystem::path config_file = directory / "tokenizer_config.json";
  try {
    json config = json::object();
    if (std::filesystem::exists(config_file)) {
      config = parse_python_json(read_text_file(config_file, 64 * mebibyte),
                                 [](std::string_view text_of_file) {
                                   return json::parse(text_of_file.begin(), text_of_file.end());
                                 });
    }
    if (!config.is_object()) return Failure{config_file.string() + ": not a JSON object"};
    const std::optional<std::string> text = std::filesystem::exists(file)
                                                ? read_text_file(file, template_bytes_max)
                                                : template_text(config);
    if (!text)
      return Failure{
          directory.string() +
          ": no chat template; put the model's own beside its tokenizer, as chat_template.jinja"};
    Result<ChatTemplate> found =
        recognise(*text, {token_text(config, "bos_token"), token_text(config, "eos_token")});
    if (!found.ok()) return Failure{directory.string() + ": " + found.error()};
    return found;
  } catch (const json::exception& error) {
    return Failure{config_file.string() + ": " + exception_text(error)};
  } catch (const Error& error) {
    return Failure{error.what()};
  }
}

}  // namespace dstrain::data
