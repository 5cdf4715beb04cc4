#include "runtime/data/jinja/template.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/base/utf8.h"
#include "runtime/data/jinja/interpreter.h"
#include "runtime/data/jinja/syntax.h"

namespace dstrain::jinja {
namespace {

constexpr std::size_t source_bytes_max = std::size_t{1} << 20;

Failure at_place(Position at, const std::string& message) {
  return Failure{fmt::format("line {}, column {}: {}", at.line, at.column, message)};
}

}  // namespace

struct Template::Parsed : ParsedTemplate {};

Result<Template> Template::parse(std::string_view source) {
  if (source.size() > source_bytes_max) return Failure{"the template is larger than 1 MiB"};
  if (find_invalid_utf8(source)) return Failure{"the template is not UTF-8"};
  try {
    return Template(std::make_shared<const Parsed>(Parsed{parse_template(source)}));
  } catch (const SyntaxError& error) {
    return at_place(error.at, error.message);
  }
}

Result<Text> Template::render(const Variables& variables) const {
  Limits limits;
  for (const auto& [name, value] : variables) limits.text_bytes += 64 * value.weight();
  Interpreter interpreter(*parsed_, limits);
  try {
    return interpreter.run(variables);
  } catch (const TemplateError& error) {
    if (error.raised) return Failure{"the chat template says: " + error.message};
    return at_place(interpreter.position(), error.message);
  }
}

bool Template::marks_generation() const {
  return parsed_->marks_generation;
}

bool Template::names(std::string_view variable) const {
  return std::ranges::find(parsed_->names, variable) != parsed_->names.end();
}

}  // namespace dstrain::jinja
