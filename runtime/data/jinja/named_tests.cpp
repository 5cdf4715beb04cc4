#include <algorithm>

#include "runtime/data/jinja/interpreter.h"
#include "runtime/data/jinja/python_text.h"

/// The tests of Jinja, as in {% if x is defined %}.
namespace dstrain::jinja {
namespace {

const Value& other_of(const Arguments& arguments) {
  if (arguments.positional.size() != 1) refuse("the test takes one argument");
  return arguments.positional.front();
}

double rest_of(Interpreter& interpreter, const Value& value, const Value& divisor) {
  double rest = 0;
  if (value.text() != nullptr ||
      !interpreter.calculate(Operator::modulo, value, divisor).as_real(rest)) {
    refuse("the test needs a number, not '", value.type_name(), "'");
  }
  return rest;
}

bool in_order(Interpreter& interpreter,
              const Value& input,
              const Arguments& arguments,
              Operator operation) {
  return interpreter.holds(operation, input, other_of(arguments));
}

bool is_sequence(const Value& value) {
  return value.sequence() != nullptr || value.text() != nullptr || value.dict() != nullptr ||
         value.is_undefined();
}

/// sameas: Python's `is`, for values of which there is one.
bool same_object(const Value& a, const Value& b) {
  if (a.form().index() != b.form().index()) return false;
  if (a.list() != nullptr) return a.list() == b.list();
  if (a.dict() != nullptr) return a.dict() == b.dict();
  return equal(a, b);
}

bool consists(Interpreter& interpreter, const Value& value, std::string_view kind) {
  const Text text = interpreter.text_of(value);
  interpreter.spend_steps(4 * std::ssize(text.bytes));
  return consists_of(text.bytes, kind);
}

bool is_float(const Value& value) {
  return value.real() != nullptr;
}

struct NamedTest {
  std::string_view name;
  TestFunction test;
};

#define DSTRAIN_JINJA_TEST(expression)                                               \
  []([[maybe_unused]] Interpreter& interpreter, [[maybe_unused]] const Value& input, \
     [[maybe_unused]] const Arguments& arguments) -> bool {                          \
    return expression;                                                               \
  }

constexpr NamedTest all_tests[]{
    {"!=", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::not_equal))},
    {"<", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::less))},
    {"<=", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::less_equal))},
    {"==", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::equal))},
    {">", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::greater))},
    {">=", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::greater_equal))},
    {"boolean", DSTRAIN_JINJA_TEST(input.boolean() != nullptr)},
    {"callable", DSTRAIN_JINJA_TEST(input.callable() != nullptr || input.loop() != nullptr)},
    {"defined", DSTRAIN_JINJA_TEST(!input.is_undefined())},
    {"divisibleby", DSTRAIN_JINJA_TEST(rest_of(interpreter, input, other_of(arguments)) == 0)},
    {"eq", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::equal))},
    {"equalto", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::equal))},
    {"escaped", DSTRAIN_JINJA_TEST(input.text() != nullptr && input.text()->markup)},
    {"even", DSTRAIN_JINJA_TEST(rest_of(interpreter, input, std::int64_t{2}) == 0)},
    {"false", DSTRAIN_JINJA_TEST(input.boolean() != nullptr && !*input.boolean())},
    {"filter",
     DSTRAIN_JINJA_TEST(input.text() != nullptr && find_filter(input.text()->bytes) != nullptr)},
    {"float", DSTRAIN_JINJA_TEST(is_float(input))},
    {"ge", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::greater_equal))},
    {"greaterthan", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::greater))},
    {"gt", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::greater))},
    {"in", DSTRAIN_JINJA_TEST(interpreter.contains(other_of(arguments), input))},
    {"integer", DSTRAIN_JINJA_TEST(input.whole() != nullptr)},
    {"iterable",
     DSTRAIN_JINJA_TEST(is_sequence(input) || input.list() != nullptr || input.loop() != nullptr)},
    {"le", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::less_equal))},
    {"lessthan", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::less))},
    {"lower", DSTRAIN_JINJA_TEST(consists(interpreter, input, "lower"))},
    {"lt", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::less))},
    {"mapping", DSTRAIN_JINJA_TEST(input.dict() != nullptr)},
    {"ne", DSTRAIN_JINJA_TEST(in_order(interpreter, input, arguments, Operator::not_equal))},
    {"none", DSTRAIN_JINJA_TEST(input.is_none())},
    {"number",
     DSTRAIN_JINJA_TEST(is_float(input) || input.whole() != nullptr || input.boolean() != nullptr)},
    {"odd", DSTRAIN_JINJA_TEST(rest_of(interpreter, input, std::int64_t{2}) == 1)},
    {"sameas", DSTRAIN_JINJA_TEST(same_object(input, other_of(arguments)))},
    {"sequence", DSTRAIN_JINJA_TEST(is_sequence(input))},
    {"string", DSTRAIN_JINJA_TEST(input.text() != nullptr)},
    {"test",
     DSTRAIN_JINJA_TEST(input.text() != nullptr && find_test(input.text()->bytes) != nullptr)},
    {"true", DSTRAIN_JINJA_TEST(input.boolean() != nullptr && *input.boolean())},
    {"undefined", DSTRAIN_JINJA_TEST(input.is_undefined())},
    {"upper", DSTRAIN_JINJA_TEST(consists(interpreter, input, "upper"))},
};

#undef DSTRAIN_JINJA_TEST

}  // namespace

TestFunction find_test(std::string_view name) {
  const auto* const test = std::ranges::find(all_tests, name, &NamedTest::name);
  return test == std::end(all_tests) ? nullptr : test->test;
}

}  // namespace dstrain::jinja
