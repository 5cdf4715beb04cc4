// What records of the common layouts become, and which ones are refused.
#include <map>

#include <fmt/format.h>

#include "runtime/data/json_record.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

namespace dstrain::test {
namespace {

/// A text as it is, a prompt and its completion as "prompt|completion", and a conversation as
/// "role:content" with "-" before what is not learned, then the other keys of messages, and the
/// variables.
std::string shown(const data::Record& record) {
  if (record.kind == data::RecordKind::text) return record.text;
  if (record.kind == data::RecordKind::completion) return record.text + "|" + record.completion;
  const data::Conversation& chat = record.conversation;
  std::string text;
  for (std::size_t i = 0; i < chat.messages.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " ", chat.learned.at(i) ? "" : "-");
    for (const auto& [key, value] : chat.messages[i].items()) {
      const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
      text += key == "role" ? shown : key == "content" ? ":" + shown : "," + key + "=" + shown;
    }
  }
  return chat.variables.empty() ? text : text + " " + chat.variables.dump();
}

struct Read {
  std::string record;
  std::string result;
};

std::string read(const std::string& text, const data::RecordOptions& options) {
  std::string result;
  const std::string error = error_of([&] {
    result = shown(data::parse_record({text, 7, 1}, "d", options));
  });
  return error.empty() ? result : error;
}

std::string with_template(const std::string& text) {
  return read(text, {.has_chat_template = true});
}

std::string without_template(const std::string& text) {
  return read(text, {});
}

}  // namespace

TEST_CASE("RecordLayout: texts and prompts with completions", "[data][json]") {
  const Read row = GENERATE(values<Read>({
      {R"({"id": 3, "text": "a\u00e9\n"})", "a\u00e9\n"},
      {R"({"text": "a", "label": 0, "context": "c", "weight": 2})", "a"},
      {R"({"completion": "b", "prompt": "a", "answer": "c", "messages": null})", "a|b"},
      // What says nothing, and what the prompt says too.
      {R"({"prompt": "a q", "completion": "b", "question": "q", "tools": "[]", "input": "",
           "label": true, "weight": 1, "images": [], "document": null})",
       "a q|b"},
      {R"({"text": null})", "d:7: text is null, not a string"},
      {R"({"text": ["a"]})", "d:7: text is array, not a string"},
      {R"({"prompt": "a", "completion": null})", "d:7: completion is null"},
      {R"({"prompt": 1, "completion": "a"})",
       "d:7: prompt is number, neither a string nor messages"},
      {R"({"prompt": "a", "completion": "b", "system": "S"})",
       "d:7: system is beside prompt, completion and would be ignored; leave it out, or write it "
       "into one of them"},
      {R"({"prompt": "a", "completion": "b", "choices": ["c"]})",
       "d:7: choices is beside prompt, completion and would be ignored; leave it out, or write it "
       "into one of them"},
      {R"({"prompt": "a", "completion": "b", "images": ["c"]})",
       "d:7: images is not implemented; only text is"},
      {R"({"prompt": "a", "completion": "b", "label": false})",
       "d:7: label is false, and bad answers are not learned; leave it out"},
      {R"({"prompt": "a", "completion": "b", "weight": 0.5})",
       "d:7: weight is 0.5; only 1 is implemented for a record"},
      {R"({"text": "a", "messages": [{"role": "user", "content": "b"}]})",
       "d:7: holds both text and messages; --text_column text takes the text, or leave one out"},
      {R"({"text": "a", "instruction": "b", "output": "c"})",
       "d:7: holds both text and instruction with output; --text_column text takes the text, or "
       "leave one out"},
  }));
  CAPTURE(row.record);
  CHECK(without_template(row.record) == row.result);
  CHECK(with_template(row.record) == row.result);
}

TEST_CASE("RecordLayout: a text column is read whatever else the record has", "[data][json]") {
  const data::RecordOptions body{.text_column = "body"};
  CHECK(read(R"({"body": "a", "text": "b", "messages": [], "chosen": "c", "rejected": "d"})",
             body) == "a");
  CHECK(read(R"({"content": "a", "id": 1})", body) ==
        "d:7: body is missing; --text_column names the key of the text, and the record has "
        "content, id");
  CHECK(read(R"({"text": "a", "prompt": "b", "completion": "c"})", {.text_column = "text"}) == "a");
}

TEST_CASE("RecordLayout: conversations under all their names", "[data][json]") {
  const Read row = GENERATE(values<Read>({
      {R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})",
       "user:a assistant:b"},
      {R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}],
           "system": "S", "id": 4})",
       "system:S user:a assistant:b"},
      {R"({"system": "", "conversation": [{"role": "User", "content": "a"},
           {"role": "ASSISTANT", "content": "b"}]})",
       "user:a assistant:b"},
      {R"({"messages": "[{\"role\": \"user\", \"content\": \"a\"}]"})", "user:a"},
      {R"({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "a"}],
           "system_prompt": "S", "prompt": "a"})",
       "system:S user:a"},
      {R"({"conversation": [{"system": "S", "input": "a", "output": "b"},
           {"input": "c", "output": "d", "output_with_loss": false}]})",
       "system:S user:a assistant:b user:c -assistant:d"},
      {R"({"conversation": [{"human": "a", "assistant": "b"}]})", "user:a assistant:b"},
      {R"({"messages": [{"role": "prompter", "content": "a"}, {"role": "model", "content": "b"},
           {"role": "developer", "content": "c"}, {"role": "function", "content": "d"},
           {"role": "bot", "content": "e"}, {"role": "bard", "content": ""}]})",
       "user:a assistant:b developer:c tool:d assistant:e assistant:"},
      {R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]})",
       R"(user:[{"type":"text","text":"a"}])"},
      // TRL's form: answers of the prompt are not learned.
      {R"({"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
           {"role": "user", "content": "c"}],
           "completion": [{"role": "assistant", "content": "d"}]})",
       "-user:a -assistant:b -user:c assistant:d"},
      {R"({"prompt": [{"role": "user", "content": "a"}], "completion": "b"})",
       "-user:a assistant:b"},
      {R"({"prompt": "a", "completion": {"role": "assistant", "content": "b"}})",
       "-user:a assistant:b"},
      {R"({"messages": []})", "d:7: messages is empty"},
      {R"({"messages": "a"})", "d:7: messages is string, not a list of messages"},
      {R"({"messages": ["a"]})", "d:7: messages[0] is string, not an object"},
      {R"({"messages": [{"role": "user"}]})", "d:7: messages[0].content is missing"},
      {R"({"conversations": [{"from": "gpt", "value": null}]})",
       "d:7: conversations[0].value is null"},
      {R"({"messages": [{"role": "user", "content": 5}]})",
       "d:7: messages[0].content is number, not a string"},
      {R"({"messages": [{"content": "b"}]})", "d:7: messages[0].role is missing, but content"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image", "url": "a"}]}]})",
       "d:7: messages[0].content has a part of type \"image\"; only text is implemented"},
      {R"({"messages": [{"role": "user", "content": "a", "audio": "b"}]})",
       "d:7: messages[0]: audio is not implemented; only text is"},
      {R"({"messages": [{"role": "system", "content": "S"}], "system": "T"})",
       "d:7: system is beside another system message; leave one"},
      {R"({"messages": [{"role": "user", "content": "a"}], "conversations": [{"from": "gpt",
           "value": "b"}]})",
       "d:7: conversations is beside messages and would be ignored; leave it out, or write it into "
       "one of them"},
      {R"({"messages": [{"role": "user", "content": "a"}], "question": "b"})",
       "d:7: question is beside messages and would be ignored; leave it out, or write it into one "
       "of them"},
      {R"({"messages": [{"role": "user", "content": "a"}], "mask": "Assistant"})",
       "d:7: mask is not implemented, but for \"User\""},
  }));
  CAPTURE(row.record);
  CHECK(without_template(row.record) == row.result);
  CHECK(with_template(row.record) == row.result);
}

TEST_CASE("RecordLayout: unknown roles are named and can be given a role", "[data][json]") {
  const std::string record = R"({"messages": [{"role": "Narrator", "content": "a"},
      {"role": "model", "content": "b"}]})";
  CHECK(without_template(record) ==
        "d:7: messages[0]: the role Narrator is unknown; say which one it is: --role_names "
        "Narrator=user, or =assistant, =system or =tool");
  CHECK(read(record, {.role_names = {{"Narrator", "system"}, {"model", "user"}}}) ==
        "system:a user:b");
}

TEST_CASE("RecordLayout: questions with answers need a template to become a conversation",
          "[data][json]") {
  struct Row {
    std::string record;
    std::string prompt;
    std::string conversation;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"instruction": "i", "input": "x", "output": "o"})",
       "### Instruction:\ni\n\n### Input:\nx\n\n### Response:\n|o", "user:i\nx assistant:o"},
      {R"({"instruction": "i", "input": "", "output": "o"})",
       "### Instruction:\ni\n\n### Response:\n|o", "user:i assistant:o"},
      {R"({"instruction": "", "input": "x", "output": "o"})",
       "### Instruction:\n\n\n### Input:\nx\n\n### Response:\n|o", "user:x assistant:o"},
      {R"({"instruction": "i", "context": "c", "response": "r", "category": "q"})", "c\n\ni\n|r",
       "user:c\n\ni assistant:r"},
      {R"({"question": "q", "answer": "a"})", "q\n|a", "user:q assistant:a"},
      {R"({"question": "q\n", "context": null, "answer": ""})", "q\n|", "user:q\n assistant:"},
      {R"({"query": "q", "response": "r", "original_question": "x"})", "q\n|r",
       "user:q assistant:r"},
      {R"({"problem": "q", "solution": "r"})", "q\n|r", "user:q assistant:r"},
      {R"({"prompt": "q", "response": "r"})", "q\n|r", "user:q assistant:r"},
      {R"({"input": "q", "output": "r"})", "q\n|r", "user:q assistant:r"},
      {R"({"instruction": "i", "output": "o", "system": "S", "history": [["a", "b"]]})",
       "system:S user:a assistant:b user:i assistant:o",
       "system:S user:a assistant:b user:i assistant:o"},
      {R"({"id": 1, "system_prompt": "S", "question": "q", "response": "r"})",
       "system:S user:q assistant:r", "system:S user:q assistant:r"},
  }));
  CAPTURE(row.record);
  CHECK(without_template(row.record) == row.prompt);
  CHECK(with_template(row.record) == row.conversation);
}

TEST_CASE("RecordLayout: tools and thoughts reach the template as they are", "[data][json]") {
  const Read row = GENERATE(values<Read>({
      {R"({"messages": [{"role": "user", "content": "a", "name": "n", "tool_calls": null},
           {"role": "assistant", "content": null, "reasoning_content": "t", "tool_calls":
             [{"type": "function", "function": {"name": "f", "arguments": {"z": 1, "a": 2.0}}}]},
           {"role": "tool", "content": {"r": 1}, "tool_call_id": "4"}],
           "tools": [{"type": "function", "function": {"name": "f", "description": ""}}],
           "documents": [{"title": "T"}], "chat_template_kwargs": {"enable_thinking": false}})",
       R"(user:a,name=n assistant:null,reasoning_content=t,tool_calls=)"
       R"([{"type":"function","function":{"name":"f","arguments":{"z":1,"a":2.0}}}] )"
       R"(tool:{"r":1},tool_call_id=4 {"tools":[{"type":"function","function":{"name":"f",)"
       R"("description":""}}],"documents":[{"title":"T"}],"enable_thinking":false})"},
      {R"({"tools": "[{\"name\": \"f\", \"a\": 1}]", "conversations": [
           {"from": "human", "value": "a"},
           {"from": "function_call", "value": "{\"name\": \"f\", \"arguments\": {\"x\": 1}}"},
           {"from": "observation", "value": "b"}, {"from": "gpt", "value": "c"}]})",
       R"(user:a assistant:,tool_calls=[{"type":"function","function":{"name":"f","arguments":)"
       R"({"x":1}}}] tool:b assistant:c {"tools":[{"name":"f","a":1}]})"},
      {R"({"messages": [{"role": "assistant", "content": null,
           "function_call": {"name": "f", "arguments": "{}"}}]})",
       R"(assistant:null,tool_calls=[{"type":"function","function":{"name":"f",)"
       R"("arguments":"{}"}}])"},
      {R"({"question": "q", "answer": "a", "tools": [{"name": "f"}]})",
       R"(user:q assistant:a {"tools":[{"name":"f"}]})"},
      {R"({"conversations": [{"from": "function_call", "value": "call f"}]})",
       "d:7: conversations[0].value is not a function's name and arguments in JSON"},
      {R"({"messages": [{"role": "user", "content": "a"}], "tools": "call f"})",
       "d:7: tools is string, not a list"},
      {R"({"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": [1]})",
       "d:7: chat_template_kwargs is array, not an object"},
      {R"({"messages": [{"role": "user", "content": "a"}], "tools": [1],
           "chat_template_kwargs": {"tools": []}})",
       "d:7: chat_template_kwargs has tools, which the record decides"},
      {R"({"messages": [{"role": "user", "content": "a"}], "functions": [{"name": "f"}]})",
       "d:7: functions is beside messages and would be ignored; leave it out, or write it into one "
       "of them"},
  }));
  CAPTURE(row.record);
  CHECK(with_template(row.record) == row.result);
}

TEST_CASE("RecordLayout: answers can be left unlearned", "[data][json]") {
  struct Row {
    std::string key;
    std::string result;
  };
  const Row row = GENERATE(values<Row>({
      {R"("weight": 0)", "-assistant:b"},
      {R"("weight": 0.0)", "-assistant:b"},
      {R"("weight": 1)", "assistant:b"},
      {R"("train": false)", "-assistant:b"},
      {R"("training": true)", "assistant:b"},
      {R"("loss": false)", "-assistant:b"},
      {R"("weight": null)", "assistant:b"},
      {R"("weight": 0.5)",
       "d:7: messages[1].weight is 0.5; only 0, 1, false and true are implemented"},
      {R"("train": "no")",
       "d:7: messages[1].train is \"no\"; only 0, 1, false and true are implemented"},
      {R"("train_detail": [{"begin_offset": 0}])",
       "d:7: messages[1].train_detail is not implemented; leave it out"},
  }));
  CAPTURE(row.key);
  const std::string found = without_template(
      fmt::format(R"({{"messages": [{{"role": "user", "content": "a", "weight": 0.5}},
                     {{"role": "assistant", "content": "b", {}}}]}})",
                  row.key));
  if (row.result.starts_with("d:7")) {
    CHECK(found == row.result);
  } else {
    CHECK_THAT(found, Catch::Matchers::StartsWith("user:a,weight=0.5 " + row.result));
  }
}

TEST_CASE("RecordLayout: what is ambiguous is refused with its keys", "[data][json]") {
  const std::string known =
      "; known are {\"text\"} (--text_column names another key), {\"prompt\", \"completion\"}, "
      "{\"messages\"}, {\"conversations\"}, {\"instruction\", \"input\", \"output\"} and "
      "{\"question\", \"answer\"}";
  const std::string ignored = " and would be ignored; leave it out, or write it into one of them";
  const Read row = GENERATE_COPY(values<Read>({
      {"{}", "d:7: no known layout of records has the keys none" + known},
      {R"({"a": 1, "b": 2})", "d:7: no known layout of records has the keys a, b" + known},
      {R"({"prompt": "a"})", "d:7: no known layout of records has the keys prompt" + known},
      {R"({"content": "a"})", "d:7: no known layout of records has the keys content" + known},
      {R"({"role": "user", "content": "a"})",
       "d:7: is a message, not a record; a record is {\"messages\": [...]} with all of a "
       "conversation"},
      {R"({"input_ids": [1], "labels": [2]})",
       "d:7: is a pair of token ids (input_ids, labels), for an encoder-decoder: give a T5 as "
       "--model_name_or_path; a decoder learns text, prompt with completion, or messages"},
      {R"({"prompt": "a", "chosen": "b", "rejected": "c"})",
       "d:7: training on preferences (chosen, rejected) is not implemented; to learn the chosen "
       "answers, leave rejected out and rename chosen to completion, or to messages if it has the "
       "question"},
      {R"({"question": "a", "answer": "b", "response": "c"})",
       "d:7: holds both response and answer; leave one out"},
      {R"({"question": "a", "answer": 5})", "d:7: answer is number, not a string"},
      {R"({"question": "a", "answer": ["b"]})", "d:7: answer is array, not a string"},
      {R"({"question": "a", "choices": ["b"], "answer": "b"})",
       "d:7: choices is beside question, answer" + ignored},
      {R"({"instruction": "i", "question": "q", "output": "o"})",
       "d:7: question is beside instruction, output" + ignored},
      {R"({"instruction": "i", "input": 5, "output": "o"})", "d:7: input is number, not a string"},
      {R"({"question": "q", "documents": ["d"], "answer": "a"})",
       "d:7: documents is beside question, answer" + ignored},
      {R"({"question": "q", "answer": "a", "reasoning": "r"})",
       "d:7: reasoning is beside question, answer" + ignored},
      {R"({"question": "q", "answer": "a", "history": ["b"]})",
       "d:7: history is not a list of questions with their answers"},
  }));
  CAPTURE(row.record);
  CHECK(without_template(row.record) == row.result);
}

}  // namespace dstrain::test
