#include "runtime/data/json_record.h"

#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/support/error_of.h"

namespace dstrain::test {
namespace {

std::string error(std::string_view line) {
  return error_of([&] { data::parse_record(line, "d.jsonl:7"); });
}

}  // namespace

TEST_CASE("JsonRecord: each kind is read", "[data][json]") {
  const data::Record text = data::parse_record(R"({"id": 3, "text": "a\u00e9\n"})", "p");
  CHECK(text.kind == data::RecordKind::text);
  CHECK(text.text == "a\xC3\xA9\n");
  const data::Record completion = data::parse_record(R"({"completion":"b","prompt":"a"})", "p");
  CHECK(completion.kind == data::RecordKind::completion);
  CHECK(completion.text == "a");
  CHECK(completion.completion == "b");
  const data::Record chat = data::parse_record(
      R"({"messages": [{"role": "user", "content": ""}, {"role": "assistant", "content": "x"}],
          "tools": null, "source": [[{}]]})",
      "p");
  CHECK(chat.kind == data::RecordKind::messages);
  REQUIRE(chat.conversation.messages.size() == 2);
  // What says nothing: no answer is left out, and the system message is there.
  CHECK(data::parse_record(
            R"({"messages": [{"role": "system", "content": "S"},
                             {"role": "user", "content": "a", "weight": 0}], "system": "S",
                "tools": "[]", "history": [], "mask": "User"})",
            "p")
            .conversation.messages.size() == 2);
  CHECK(chat.conversation.messages[0].at("role") == "user");
  CHECK(chat.conversation.messages[1].at("content") == "x");
}

TEST_CASE("JsonRecord: errors are named with their place", "[data][json]") {
  struct Row {
    std::string line;
    std::string message;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"input_ids": [1], "labels": [2]})",
       "d.jsonl:7: is a pair of token ids (input_ids, labels), for an encoder-decoder: give a T5 "
       "as "
       "--model_name_or_path; a decoder learns text, prompt with completion, or messages"},
      {"{}", "d.jsonl:7: has neither text, nor prompt and completion, nor messages"},
      {"[]", "d.jsonl:7: not a JSON object; each line is one"},
      {"7", "d.jsonl:7: not a JSON object; each line is one"},
      {R"({"text": true})", "d.jsonl:7: text is boolean, not a string"},
      {R"({"prompt": "a"})", "d.jsonl:7: completion is missing"},
      {R"({"content": "a", "meta": {}})",
       "d.jsonl:7: has neither text, nor prompt and completion, nor messages, but content, "
       "meta:\n  jq -cn 'inputs | . + {text: .content} | del(.content)' d.jsonl > "
       "d-converted.jsonl.tmp && "
       "mv d-converted.jsonl.tmp d-converted.jsonl"},
      {R"({"completion": "a"})", "d.jsonl:7: prompt is missing"},
      {R"({"prompt": [{"role": "user"}], "completion": "a"})",
       "d.jsonl:7: prompt is a list; only text is implemented, as a string"},
      {R"({"text": "a", "messages": []})",
       "d.jsonl:7: holds more than one of text, prompt with completion, and messages; leave one"},
      {R"({"messages": "a"})", "d.jsonl:7: messages is string, not a list of role and content"},
      {R"({"messages": []})", "d.jsonl:7: messages is empty"},
      {R"({"messages": ["a"]})", "d.jsonl:7: messages[0] is string, not an object"},
      {R"({"messages": [{"role": "user"}]})", "d.jsonl:7: messages[0].content is missing"},
      {R"({"messages": [{"role": "user", "content": "a"}, {"content": "b"}]})",
       "d.jsonl:7: messages[1].role is missing"},
      {R"({"messages": [{"role": "user", "content": [{"type": "image", "text": "a"}]}]})",
       "d.jsonl:7: messages[0].content is a list; only text is implemented, as a string"},
      {R"({"messages": [{"role": "assistant", "content": "", "tool_calls": [{}]}]})",
       "d.jsonl:7: messages[0]: tool_calls is not implemented, and the message has no content "
       "beside it; leave the conversation out:\n  jq -nrR 'inputs | select(explode | any(. > 32)) "
       "| "
       "select(fromjson | all(.messages[]; (.tool_calls // []) | length == 0))' d.jsonl > "
       "d-converted.jsonl.tmp && mv d-converted.jsonl.tmp d-converted.jsonl"},
      {R"({"messages": [{"role": "assistant", "content": "a", "tool_calls": [{}]}]})",
       "d.jsonl:7: messages[0]: tool_calls is not implemented; leave it out"},
      {R"({"messages": [{"role": "assistant", "content": "a", "loss": false}]})",
       "d.jsonl:7: messages[0]: loss false is not implemented: the answer would be learned as any "
       "other; split the conversation before it, or leave the record out:\n  jq -nrR 'inputs | "
       "select(explode | any(. > 32)) | select(fromjson | all(.messages[]; .role != \"assistant\" "
       "or (.loss | . == null or . == true or . == 1)))' d.jsonl > d-converted.jsonl.tmp && mv "
       "d-converted.jsonl.tmp d-converted.jsonl"},
      {R"({"messages": [{"role": "observation", "content": "a"}]})",
       "d.jsonl:7: messages[0]: the role observation is not implemented; leave the record out"},
      {R"({"messages": [{"role": "user", "content": "a"}], "images": ["a"]})",
       "d.jsonl:7: images is not implemented; leave it out"},
      {R"({"prompt": "a", "completion": "b", "tools": [{}]})",
       "d.jsonl:7: tools is not implemented; leave it out"},
      {R"({"messages": [{"role": "system", "content": "a"}], "system": "b"})",
       "d.jsonl:7: system is beside messages and would be ignored; make it one of them, or "
       "leave it out"},
      {R"({"messages": [{"role": "user", "content": "a"}], "tools": [{}]})",
       "d.jsonl:7: tools is not implemented; leave it out"},
      {R"({"text": "a", "text": "b"})", "d.jsonl:7: the key 'text' appears twice"},
      {R"({"messages": [{"role": "a", "role": "b", "content": ""}]})",
       "d.jsonl:7: the key 'role' appears twice"},
  }));
  CAPTURE(row.line);
  CHECK(error(row.line) == row.message);
}

TEST_CASE("JsonRecord: Python's NaN and Infinity are accepted in unused values", "[data][json]") {
  const data::Record record = data::parse_record(
      R"({"score": NaN, "text": "NaN \"Infinity\" ", "range": [-Infinity, Infinity]})", "p");
  CHECK(record.text == "NaN \"Infinity\" ");
  CHECK(data::parse_pair(R"({"loss":NaN,"input_ids":[1],"labels":[2]})", "p").labels.size() == 1);
  CHECK_THAT(error(R"({"text": nan})"), Catch::Matchers::StartsWith("d.jsonl:7:11: not JSON: "));
}

TEST_CASE("JsonRecord: records of other programs are named with their conversion", "[data][json]") {
  CHECK_THAT(error(R"({"conversations": [{"from": "human", "value": "a"}], "id": 1})"),
             Catch::Matchers::StartsWith(
                 "d.jsonl:7: has neither text, nor prompt and completion, "
                 "nor messages, but conversations, id:\n  jq -cn 'inputs | . + ") &&
                 Catch::Matchers::EndsWith(" && mv d-converted.jsonl.tmp d-converted.jsonl"));
  CHECK_THAT(error(R"({"messages": [{"from": "human", "value": "a"}]})"),
             Catch::Matchers::StartsWith("d.jsonl:7: messages[0] has from, value in place of "
                                         "role and content:\n  jq -cn 'inputs | . + {messages: ["));
  CHECK_THAT(
      error(R"({"role": "user", "content": "a"})"),
      Catch::Matchers::ContainsSubstring("messages, but content, role; a line is a conversation"));
  CHECK_THAT(error(R"({"a": 1, "b": 2})"),
             Catch::Matchers::ContainsSubstring("messages, but a, b; type which keys they are"));
  CHECK_THAT(
      error(R"({"prompt": "a", "response": "b"})"),
      Catch::Matchers::StartsWith("d.jsonl:7: completion is missing:\n  jq -cn 'inputs | def "));
}

TEST_CASE("JsonRecord: prompt keys beside prompt and completion are refused", "[data][json]") {
  for (const std::string key : {"instruction", "context", "input"}) {
    CAPTURE(key);
    CHECK_THAT(error(fmt::format(R"({{"prompt": "a", "completion": "b", "{}": "c"}})", key)),
               Catch::Matchers::StartsWith("d.jsonl:7: " + key +
                                           " is beside prompt and completion and would be ignored; "
                                           "leave it out, or put it in:\n  jq -cn "));
    CHECK(error(fmt::format(R"({{"prompt": "a", "completion": "b", "{}": ""}})", key)) == "");
    CHECK(error(fmt::format(R"({{"text": "a", "{}": "c"}})", key)) == "");
  }
}

TEST_CASE("JsonRecord: answers are not for token files", "[data][json]") {
  const auto text_error = [](const std::string& line) {
    return error_of([&] { data::parse_text(line, "text", "d.jsonl:7"); });
  };
  for (const std::string line :
       {R"({"prompt": "a", "completion": "b"})", R"({"question": "a", "answer": "b"})",
        R"({"conversations": [{"from": "human", "value": "a"}]})"}) {
    CHECK_THAT(text_error(line), Catch::Matchers::EndsWith("give the records to dstrain train"));
  }
  CHECK_THAT(text_error(R"({"content": "a"})"),
             Catch::Matchers::ContainsSubstring("--text_column names the key to read"));
}

TEST_CASE("JsonRecord: broken JSON is named with its column", "[data][json]") {
  CHECK_THAT(error(R"({"text": "a)"), Catch::Matchers::StartsWith("d.jsonl:7:12: not JSON: ") &&
                                          Catch::Matchers::EndsWith("; each line is one object"));
  CHECK_THAT(error(R"({"text": x})"), Catch::Matchers::StartsWith("d.jsonl:7:10: not JSON: "));
  CHECK_THAT(error("{\"text\": \"\xFF\"}"),
             Catch::Matchers::StartsWith("d.jsonl:7:11: not UTF-8 text: this byte (0xff) "));
  CHECK_THAT(error(R"({"text": "a"} x)"), Catch::Matchers::StartsWith("d.jsonl:7:15: not JSON: "));
  CHECK(error(std::string("{\"text\": \"\0\"}", 13)) == "d.jsonl:7:11: a NUL byte; is it JSON?");
  const std::string huge = "{\"text\": \"" + std::string(100'000, 'a');
  CHECK(error(huge).size() < 300);
  CHECK(error("{\"a\":" + std::string(100, '[')) == "d.jsonl:7: nested deeper than 64");
  // A key may come again in another object.
  CHECK(error(R"({"a": {"text": 1}, "b": [{"text": 1}, {"text": 2}], "text": "a"})") == "");
}

}  // namespace dstrain::test
