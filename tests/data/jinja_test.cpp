#include <limits>

#include <nlohmann/json.hpp>

#include "runtime/data/jinja/template.h"
#include "runtime/os/file.h"
#include "tests/data/jinja_values.h"
#include "tests/support/catch.h"

namespace dstrain::test {
namespace {

using nlohmann::ordered_json;

ordered_json rendered(const std::string& template_text, const ordered_json& variables) {
  const auto parsed = jinja::Template::parse(template_text);
  if (!parsed.ok()) return {{"error", parsed.error()}};
  const auto text = parsed.value().render(jinja_variables(variables));
  if (!text.ok()) return {{"error", text.error()}};
  return {{"text", text.value().bytes}};
}

/// Whether a template does what the golden case says; its error has the same text if the template
/// raised it.
bool agrees(const ordered_json& found, const ordered_json& golden) {
  if (golden.contains("text")) return found.value("text", "none") == golden.at("text");
  if (!found.contains("error")) return false;
  const ordered_json& error = golden.at("error");
  return error.is_boolean() ||
         found.at("error") == "the chat template says: " + error.get<std::string>();
}

/// An input of a template whose texts come from source 1.
jinja::Value marked(const std::string& bytes) {
  jinja::Text text{bytes};
  text.mark(1);
  return text;
}

/// The parts of a text that come from source 1, with bars between them.
std::string from_input(const std::string& template_text) {
  const auto parsed = jinja::Template::parse(template_text);
  REQUIRE(parsed.ok());
  const auto text = parsed.value().render({{"x", marked("Hello World")}});
  if (!text.ok()) return "error: " + text.error();
  std::string parts;
  for (const jinja::Origin& origin : text.value().origins) {
    if (origin.begin == origin.end) continue;
    parts += text.value().bytes.substr(origin.begin, origin.end - origin.begin) + "|";
  }
  return parts;
}

}  // namespace

TEST_CASE("Jinja: small templates render as in transformers", "[data][jinja]") {
  const auto path = std::filesystem::path(DSTRAIN_SOURCE_DIR) / "tests/golden/jinja.json";
  const auto golden = ordered_json::parse(read_text_file(path, mebibyte));
  REQUIRE(golden.at("cases").size() > 1000);
  for (const ordered_json& item : golden.at("cases")) {
    const auto found = rendered(item.at("jinja"), golden.at("variables"));
    CAPTURE(item.dump(), found.dump());
    CHECK(agrees(found, item));
  }
}

TEST_CASE("Jinja: texts know from which input they come", "[data][jinja]") {
  struct Row {
    std::string jinja;
    std::string parts;
  };
  const Row row = GENERATE(values<Row>({
      {"a{{ x }}b{{ x }}", "Hello World|Hello World|"},
      {"{{ 'a' ~ x ~ 'b' }}", "Hello World|"},
      {"{{ 'a' + x + 'b' }}", "Hello World|"},
      {"{{ x[6:] }}{{ x[-1] }}{{ x[:2] }}", "World|d|He|"},
      {"{{ x.split(' ')[1] }}", "World|"},
      {"{{ x.strip('Hd') }}", "ello Worl|"},
      {"{{ x | trim }}", "Hello World|"},
      {"{{ x.replace('o', '0') }}", "Hell| W|rld|"},
      {"{{ x | upper }}{{ x | tojson }}", "HELLO WORLD|\"Hello World\"|"},
      {"{% set z %}<{{ x }}>{% endset %}{{ z }}", "Hello World|"},
      {"{% macro m(t) %}<{{ t }}>{% endmacro %}{{ m(x) }}", "Hello World|"},
      {"{% for c in x[:2] %}{{ c }}{% endfor %}", "H|e|"},
      {"{{ [x, x] | join('-') }}", "Hello World|Hello World|"},
      {"{{ '%s!' % x }}{{ '{}?'.format(x) }}", "Hello World|Hello World|"},
      {"{{ {'k': [x]} | tojson }}", "{\"k\": [\"Hello World\"]}|"},
      {"{{ x | length }}{{ x == 'a' }}{{ x and 'a' }}", ""},
  }));
  CAPTURE(row.jinja);
  CHECK(from_input(row.jinja) == row.parts);
}

TEST_CASE("Jinja: an empty text knows where it was put", "[data][jinja]") {
  const auto parsed = jinja::Template::parse("ab{{ x ~ 'c' }}d{{ x | trim }}");
  const auto text = parsed.value().render({{"x", marked("")}});
  REQUIRE(text.ok());
  CHECK(text.value().bytes == "abcd");
  CHECK(text.value().extent(1) == jinja::Origin{2, 4, 1});
  CHECK_FALSE(text.value().extent(2));
}

TEST_CASE("Jinja: errors name the line and column", "[data][jinja]") {
  struct Row {
    std::string jinja;
    std::string place;
  };
  const Row row = GENERATE(values<Row>({
      {"a\n  {{ b.c.d }}", "line 2, column "},
      {"{{ 1", "line 1, column "},
      {"é{{ ) }}", "line 1, column "},
      {"{# a", "line 1, column "},
      {"a\r\nb\rc{% x %}", "line 3, column 2: "},
      {"{% if a %}\n\n{% endfor %}", "line "},
      {"{{ 'a' }}\n{% include 'x' %}", "line 2, column 1: "},
      {"{% macro m() %}\n{{ 1 + 'a' }}{% endmacro %}\n{{ m() }}", "line 2, column "},
  }));
  CAPTURE(row.jinja);
  const std::string error = rendered(row.jinja, ordered_json::object()).value("error", "none");
  CHECK_THAT(error, Catch::Matchers::StartsWith(row.place));
}

TEST_CASE("Jinja: a template tells what it names and marks", "[data][jinja]") {
  const auto parsed = jinja::Template::parse(
      "{# tools #}{{ 'documents' }}{% for m in messages %}{{ m.tool }}{% endfor %}");
  REQUIRE(parsed.ok());
  CHECK(parsed.value().names("messages"));
  CHECK_FALSE(parsed.value().names("tools"));
  CHECK_FALSE(parsed.value().names("documents"));
  CHECK_FALSE(parsed.value().names("tool"));
  CHECK_FALSE(parsed.value().marks_generation());
  CHECK(jinja::Template::parse("{%- generation -%}{% endgeneration %}").value().marks_generation());
  CHECK_FALSE(
      jinja::Template::parse("{% raw %}{% generation %}{% endraw %}").value().marks_generation());
}

TEST_CASE("Jinja: the smallest and the largest integers do not overflow", "[data][jinja]") {
  const ordered_json variables{{"least", std::numeric_limits<std::int64_t>::min()},
                               {"most", std::numeric_limits<std::int64_t>::max()}};
  struct Row {
    std::string jinja;
    std::string text;  ///< or the end of the error
  };
  const Row row = GENERATE(values<Row>({
      {"{{ least // -1 }}", "an integer does not fit in 64 bits"},
      {"{{ least % -1 }}", "0"},
      {"{{ -least }}", "an integer does not fit in 64 bits"},
      {"{{ [1, 2, 3][1::most] }}", "[2]"},
      {"{{ 'abc'[2::least] }}", "c"},
      {"{{ 'x'.center(least) }}", "x"},
      {"{{ 1.5|round(least) }}", "the precision is out of range"},
      {"{{ 'abcdefghij klm'|truncate(5, true, '.', most) }}", "abcdefghij klm"},
  }));
  CAPTURE(row.jinja);
  const ordered_json result = rendered(row.jinja, variables);
  const std::string key = result.contains("text") ? "text" : "error";
  CHECK_THAT(result.value(key, "none"), Catch::Matchers::EndsWith(row.text));
}

}  // namespace dstrain::test
