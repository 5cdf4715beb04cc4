#include "runtime/config/json_reader.h"

#include <random>
#include <regex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/config/support.h"
#include "tests/support/catch.h"

using dstrain::config::JsonValue;
using dstrain::config::Problems;
using dstrain::config::read_json;
using dstrain::test::contains;
using dstrain::test::message_of;

namespace {

JsonValue read(const std::string& text) {
  Problems problems("ds.json");
  JsonValue root = read_json(text, problems);
  problems.throw_if_any();
  return root;
}

std::string json_error(const std::string& text) {
  return message_of([&] { read(text); });
}

/// The value as nlohmann/json would hold it.
nlohmann::json as_nlohmann(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::null:
      return nullptr;
    case JsonValue::Kind::boolean:
      return value.boolean;
    case JsonValue::Kind::number:
      return value.number;
    case JsonValue::Kind::string:
      return value.text;
    case JsonValue::Kind::array: {
      nlohmann::json list = nlohmann::json::array();
      for (const JsonValue& element : value.elements) list.push_back(as_nlohmann(element));
      return list;
    }
    case JsonValue::Kind::object: {
      nlohmann::json object = nlohmann::json::object();
      for (const auto& member : value.members) object[member.key] = as_nlohmann(member.value);
      return object;
    }
  }
  return {};
}

}  // namespace

TEST_CASE("JsonReader: comments and trailing commas and a byte order mark", "[config][json]") {
  const JsonValue root = read(
      "\xEF\xBB\xBF// head\n"
      "{ # hash\n"
      "  \"a\": 1, /* in\nside */ \"b\": [1, 2,],\n"
      "  \"url\": \"http://x#y/*z*/\", // not in strings\n"
      "}\n# end");
  REQUIRE(root.members.size() == 3);
  CHECK(root.members[0].value.integer == 1);
  CHECK(root.members[1].position.line == 4);
  CHECK(root.members[1].value.elements.size() == 2);
  CHECK(root.members[2].value.text == "http://x#y/*z*/");
}

TEST_CASE("JsonReader: accepts HJSON without braces and commas and quotes", "[config][json]") {
  const nlohmann::json expected = {
      {"stage", 2}, {"on", true}, {"list", {1, 2}}, {"in", {{"x", 1}}}};
  for (const char* text : {
           "{stage: 2, on: true, list: [1, 2], in: {x: 1}}",
           "stage: 2\non: true\nlist: [\n1\n2\n]\nin: {\nx: 1\n}\n",
           "\"stage\": 2, \"on\": true # comment\n\"list\": [1, 2],\n\"in\": {\"x\": 1},\n",
           "// braces absent\n\"stage\": 2 /* a line ends here\n */ \"on\": true\r\nlist: [1,\n2]\n"
           "in: {\"x\": 1,\n}",
       }) {
    CAPTURE(text);
    CHECK(as_nlohmann(read(text)) == expected);
  }
  CHECK(json_error("a: 1\n\"a\": 2") == "ds.json:2:1: duplicate key \"a\", first given at 1:1");
}

TEST_CASE("JsonReader: a comment that hides keys gets a warning", "[config][json]") {
  const auto warnings = [](const std::string& text) {
    Problems problems("ds.json");
    read_json(text, problems);
    return problems.warnings();
  };
  struct Row {
    std::string text, hidden;
  };
  const Row row = GENERATE(values<Row>({
      {"{\"a\": 1, // size\"b\": 2,\n}",
       "1:10: this comment runs to the end of its line and hides "
       "\"b\"; if that is not meant, break the line before"},
      {"{ # \"b\" : {\n}",
       "1:3: this comment runs to the end of its line and hides \"b\"; if that "
       "is not meant, break the line before"},
      {"{\"a\":\n1 // \"x\", \"b\": 2, \"c\": 3, \"b\": 2, \"d\": [], \"e\": 1, \"f\": 0\n}",
       "2:3: this comment runs to the end of its line and hides \"b\", \"c\", \"d\" and 2 more; if "
       "that is not meant, break the line before"},
      {"{\"a\": 1, // the \"b\" of c: 2\n}", ""},
      {"{\"a\": 1,\n  // \"b\": 2,\n/* x */ // \"b\": 2\n}", ""},
      {"{\"a\": 1 /* \"b\": 2 */}", ""},
      {"// \"b\": 1\n{}", ""},
      {"{\"a\": \"// \\\"b\\\": 2\"}", ""},
  }));
  CAPTURE(row.text);
  const std::vector<std::string> told = warnings(row.text);
  REQUIRE(told.size() == (row.hidden.empty() ? 0 : 1));
  if (!row.hidden.empty()) CHECK(told[0] == "ds.json:" + row.hidden);
}

TEST_CASE("JsonReader: positions count lines and characters", "[config][json]") {
  const JsonValue root = read("{\n  \"über\": true, \"b\": {\"c\": null}}");
  CHECK(root.members[0].position.line == 2);
  CHECK(root.members[0].position.column == 3);
  CHECK(root.members[0].value.position.column == 11);
  CHECK(root.members[1].value.members[0].value.position.column == 28);
}

TEST_CASE("JsonReader: whole numbers", "[config][json]") {
  const auto whole = [](const std::string& number) {
    return read("{\"n\": " + number + "}").members[0].value.integer;
  };
  CHECK(whole("5e8") == 500'000'000);
  CHECK(whole("0.94e6") == 940'000);
  CHECK(whole("2.0") == 2);
  CHECK(whole("-0") == 0);
  CHECK(whole("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  CHECK(whole("0.5") == std::nullopt);
  CHECK(whole("1e30") == std::nullopt);
}

TEST_CASE("JsonReader: errors name the place", "[config][json]") {
  struct Row {
    std::string text, message;
  };
  const Row row = GENERATE(values<Row>({
      {"", "ds.json:1:1: expected { and a JSON object, but the file ends"},
      {"[1]", "ds.json:1:1: expected { and a JSON object, got ["},
      {"{", "ds.json:1:2: expected a key in double quotes, but the file ends"},
      {"{\"a\": 1 \"b\": 2}", "ds.json:1:9: expected , or }, got \""},
      {"{\"a\": [1 2]}", "ds.json:1:10: expected , or ], got 2"},
      {"{\"a\": 1\n", "ds.json:2:1: expected , or }, but the file ends"},
      {"\"a\": 1 b: 2", "ds.json:1:8: expected a comma or the end of the line, got b"},
      {"\"a\": 1}", "ds.json:1:7: expected a comma or the end of the line, got }"},
      {"ds_config = {\"a\": True}",
       "ds.json:1:1: this is Python; a configuration is JSON, from { to }, with true, false, null"},
      {"{'a': 1}", "ds.json:1:2: strings need double quotes"},
      {"{\"a\":\n'''x'''}",
       "ds.json:2:1: HJSON's ''' strings are not supported; use double quotes"},
      {"{\"a\": 1, // size \"b\": 2}",
       "ds.json:1:25: expected a key in double quotes, but the file ends; the comment at 1:10 "
       "hides "
       "the rest of its line"},
      {"{\"a\" 1}", "ds.json:1:6: expected : after \"a\", got 1"},
      {"{\"a\": }", "ds.json:1:7: expected a value, got }"},
      {"{\"a\": ZERO_STAGE,", "ds.json:1:7: ZERO_STAGE: this is a placeholder; write its value"},
      {"{\"a\": ${BATCH}}", "ds.json:1:7: ${BATCH}: this is a placeholder; write its value"},
      {"{\"a\": <N>, ", "ds.json:1:7: <N>: this is a placeholder; write its value"},
      {"{\"a\": TRUE}", "ds.json:1:7: TRUE: write true"},
      {"{1: 1}", "ds.json:1:2: expected a key in double quotes, got 1"},
      {"{,}", "ds.json:1:2: expected a key in double quotes, got ,"},
      {"{\"a\": 1,,}", "ds.json:1:9: expected a key in double quotes, got ,"},
      {"{\"a\": 1} x", "ds.json:1:10: expected nothing after the closing }, got x"},
      {"{\"a\": True}", "ds.json:1:7: True: that is Python; write true"},
      {"{\"a\": None}", "ds.json:1:7: None: that is Python; leave the key out, or write null"},
      {"{\"a\": NaN}", "ds.json:1:7: NaN: JSON has no NaN"},
      {"{\"a\": Infinity}",
       "ds.json:1:7: Infinity: JSON has no infinity; write a large number, or for "
       "gradient_clipping 0, which never clips"},
      {"{\"a\": cpu}",
       "ds.json:1:7: cpu: words need double quotes; HJSON's strings without them are not "
       "supported"},
      {"{\"a\": 'x'}", "ds.json:1:7: strings need double quotes"},
      {"{\"a\": 01}", "ds.json:1:7: a number has no leading zeros"},
      {"{\"a\": 1.}", "ds.json:1:9: expected a digit after the point, got }"},
      {"{\"a\": 1e}", "ds.json:1:9: expected a digit of the exponent, got }"},
      {"{\"a\": -}", "ds.json:1:8: expected a digit of a number, got }"},
      {"{\"a\": 1e999}", "ds.json:1:7: 1e999 is out of the range of numbers"},
      {"{\"a\": \"x}", "ds.json:1:7: this string has no closing quote"},
      {"{\"a\": \"x\n\"}", "ds.json:1:7: this string has no closing quote"},
      {"{\"a\": \"\\q\"}", "ds.json:1:8: JSON has no such escape in a string"},
      {"{\"a\": \"\\ud800\"}", "ds.json:1:8: the second half of this \\u pair is missing"},
      {"{\"a\": \"\\u12g4\"}", "ds.json:1:12: expected four hexadecimal digits after \\u, got g"},
      {"{\"a\": \"\xFF\"}", "ds.json:1:8: this is not UTF-8 text"},
      {"{\"a\": \x01}", "ds.json:1:7: expected a value, got byte 0x01"},
      {"{ /* x", "ds.json:1:3: this /* comment has no end"},
      {"{\"a\": 1, \"b\": 2, \"a\": 3}", "ds.json:1:18: duplicate key \"a\", first given at 1:2"},
  }));
  CAPTURE(row.text);
  CHECK(json_error(row.text) == row.message);
}

TEST_CASE("JsonReader: duplicates at every level are reported", "[config][json]") {
  const std::string error =
      json_error("{\"a\": {\"x\": 1,\n\"x\": 2},\n\"a\": 1,\n\"\\u0061\": 2}");
  CHECK(error ==
        "ds.json:2:1: duplicate key \"x\", first given at 1:8\n"
        "ds.json:3:1: duplicate key \"a\", first given at 1:2\n"
        "ds.json:4:1: duplicate key \"a\", first given at 1:2");
}

TEST_CASE("JsonReader: huge and deeply nested texts are refused quickly", "[config][json]") {
  const std::size_t levels = 31;  // with the object outside: 32
  const auto nested = [](std::size_t depth) {
    return fmt::format("{{\"a\": {}{}}}", std::string(depth, '['), std::string(depth, ']'));
  };
  CHECK_NOTHROW(read(nested(levels)));
  CHECK(contains(json_error(nested(levels + 1)), "nested more than 32 deep"));
  CHECK(contains(json_error(fmt::format("{{\"a\": {:[<500000}", "")), "nested more than 32 deep"));
  CHECK(contains(json_error(fmt::format("{{{:1048576}}}", "")), "larger than 1.00 MiB"));

  std::string many = "{";
  for (int i = 0; i < 60'000; ++i) many += fmt::format("\"{}\":0,", i);
  CHECK(read(many + "}").members.size() == 60'000);
}

TEST_CASE("JsonReader: agrees with another reader on damaged texts", "[config][json]") {
  const std::string good =
      R"({"a": [1, -2.5e3, {"b": "x\n\u00e9\ud83d\ude00"}], "c": true, "d": null, "e": "ü"})";
  const std::string alphabet = "{}[]\",:0123456789.eE+-tfnu\\ \n\xC3\x01";
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::minstd_rand random(seed);
    std::string text = good;
    for (auto edits = random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      const char replacement = alphabet[random() % alphabet.size()];
      if (random() % 2 == 0) {
        text[at] = replacement;
      } else {
        text.erase(at, 1);
      }
    }
    // Leave out what only this reader accepts or refuses: trailing commas, HJSON, duplicates.
    const bool ours_alone =
        text.front() != '{' || text.find('\n') != std::string::npos ||
        std::regex_search(text, std::regex("[{,] *[A-Za-z_]")) ||
        text.find(",}") != std::string::npos || text.find(", }") != std::string::npos ||
        text.find(",]") != std::string::npos || text.find(", ]") != std::string::npos;
    const nlohmann::json expected = nlohmann::json::parse(text, nullptr, false);
    const std::string error = json_error(text);
    if (ours_alone || contains(error, "duplicate key")) continue;
    CAPTURE(seed, text, error);
    REQUIRE((error == "no error") == (!expected.is_discarded() && expected.is_object()));
    if (error == "no error") REQUIRE(as_nlohmann(read(text)) == expected);
  }
}
