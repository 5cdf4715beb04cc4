#include "runtime/data/json_record.h"

#include "tests/support/catch.h"
#include "tests/support/error_of.h"

namespace dstrain::test {
namespace {

std::string error(std::string_view text) {
  return error_of([&] { data::parse_record({text, 7, 1}, "d.jsonl"); });
}

}  // namespace

TEST_CASE("JsonRecord: Python's NaN and Infinity are accepted in unused values", "[data][json]") {
  const data::Record record = data::parse_record(
      {R"({"score": NaN, "text": "NaN \"Infinity\" ", "range": [-Infinity, Infinity]})"}, "p");
  CHECK(record.text == "NaN \"Infinity\" ");
  CHECK(data::parse_pair({R"({"loss":NaN,"input_ids":[1],"labels":[2]})"}, "p").labels.size() == 1);
  CHECK_THAT(error(R"({"text": nan})"), Catch::Matchers::StartsWith("d.jsonl:7:11: not JSON: "));
}

TEST_CASE("JsonRecord: broken JSON is named with its line and column", "[data][json]") {
  CHECK_THAT(error(R"({"text": "a)"), Catch::Matchers::StartsWith("d.jsonl:7:12: not JSON: "));
  CHECK_THAT(error(R"({"text": x})"), Catch::Matchers::StartsWith("d.jsonl:7:10: not JSON: "));
  CHECK_THAT(error("{\"text\":\n  \"a\"\n  x}"),
             Catch::Matchers::StartsWith("d.jsonl:9:3: not JSON: "));
  CHECK_THAT(error_of([&] {
               data::parse_record({R"({"text": x})", 7, 21}, "d.json");
             }),
             Catch::Matchers::StartsWith("d.json:7:30: not JSON: "));
  CHECK_THAT(error("{\"text\": \"\xFF\"}"),
             Catch::Matchers::StartsWith("d.jsonl:7:11: not UTF-8 text: this byte (0xff) "));
  CHECK_THAT(error(R"({"text": "a"} x)"), Catch::Matchers::StartsWith("d.jsonl:7:15: not JSON: "));
  CHECK_THAT(error("{'text': 'a'}"),
             Catch::Matchers::EndsWith("; the quotes are Python's: write records by json.dumps"));
  CHECK(error(std::string("{\"text\": \"\0\"}", 13)) == "d.jsonl:7:11: a NUL byte; is it JSON?");
  CHECK(error("[]") == "d.jsonl:7: not a JSON object, but array; each record is one");
  CHECK(error("7") == "d.jsonl:7: not a JSON object, but number; each record is one");
  const std::string huge = "{\"text\": \"" + std::string(100'000, 'a');
  CHECK(error(huge).size() < 300);
  CHECK(error("{\"a\":" + std::string(100, '[')) == "d.jsonl:7: nested deeper than 64");
}

TEST_CASE("JsonRecord: a key that appears twice is refused", "[data][json]") {
  CHECK(error(R"({"text": "a", "text": "b"})") == "d.jsonl:7: the key 'text' appears twice");
  CHECK(error(R"({"messages": [{"role": "a", "role": "b", "content": ""}]})") ==
        "d.jsonl:7: the key 'role' appears twice");
  // It may come again in another object.
  CHECK(error(R"({"a": {"text": 1}, "b": [{"text": 1}, {"text": 2}], "text": "a"})") == "");
}

TEST_CASE("JsonRecord: answers are not for token files", "[data][json]") {
  const auto text_error = [](std::string_view text) {
    return error_of([&] { data::parse_text({text, 7, 1}, "text", "d.jsonl"); });
  };
  for (const char* const text :
       {R"({"prompt": "a", "completion": "b"})", R"({"question": "a", "answer": "b"})",
        R"({"conversations": [{"from": "human", "value": "a"}]})"}) {
    CHECK_THAT(text_error(text), Catch::Matchers::EndsWith("give the records to dstrain train"));
  }
  CHECK(text_error(R"({"content": "a", "id": 1})") ==
        "d.jsonl:7: text is missing; --text_column names the key of the text, and the record has "
        "content, id");
}

}  // namespace dstrain::test
