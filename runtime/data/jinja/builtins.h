#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/jinja/value.h"

/// The functions that come with Jinja: filters, tests, methods, global functions, formats.
namespace dstrain::jinja {

/// Binds the arguments of a function to the names of its parameters.
class Parameters {
 public:
  /// Throws TemplateError for an argument that has no parameter.
  Parameters(std::string_view function,
             const Arguments& arguments,
             std::initializer_list<std::string_view> names);

  /// The argument of a parameter; null: it is not given.
  const Value* operator[](std::size_t parameter) const { return bound_.at(parameter); }
  /// Throws TemplateError if it is not given.
  [[nodiscard]] const Value& required(std::size_t parameter) const;
  /// With the type that a parameter must have; `other` if it is not given.
  [[nodiscard]] std::int64_t whole(std::size_t parameter, std::int64_t other) const;
  [[nodiscard]] bool truth(std::size_t parameter, bool other) const;
  [[nodiscard]] Text text(std::size_t parameter, std::string_view other) const;
  [[nodiscard]] Text required_text(std::size_t parameter) const;

 private:
  std::string function_;
  std::vector<const Value*> bound_;
};

/// The built-in functions, by name; null: there is none.
using FilterFunction = Value (*)(Interpreter&, const Value& input, const Arguments& arguments);
using TestFunction = bool (*)(Interpreter&, const Value& input, const Arguments& arguments);
FilterFunction find_filter(std::string_view name);
TestFunction find_test(std::string_view name);

/// A method of a value's type; null: it has none of the name. A method that would change the value
/// refuses to, because templates run in a sandbox.
using MethodFunction = Value (*)(Interpreter&, const Value& self, const Arguments& arguments);
MethodFunction find_method(const Value& object, std::string_view name);

/// range, dict, namespace, raise_exception, cycler, joiner.
std::vector<std::pair<std::string, Value>> global_functions();

/// Python's % of a string, and str.format.
Text format_percent(Interpreter& interpreter, const Text& format, const Value& values);
Text format_braces(Interpreter& interpreter, const Text& format, const Arguments& arguments);

}  // namespace dstrain::jinja
