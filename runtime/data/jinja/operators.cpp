#include <algorithm>
#include <cmath>

#include "runtime/data/jinja/interpreter.h"
#include "runtime/data/jinja/python_text.h"

/// Python's operators.
namespace dstrain::jinja {
namespace {

[[noreturn]] void refuse_operands(std::string_view operation, const Value& a, const Value& b) {
  for (const Value* value : {&a, &b}) {
    if (const auto* const missing = std::get_if<Undefined>(&value->form())) {
      refuse(*missing->reason);
    }
  }
  refuse("unsupported operand types for ", operation, ": '", a.type_name(), "' and '",
         b.type_name(), "'");
}

std::int64_t checked_whole(bool overflows, std::int64_t value) {
  if (overflows) refuse("an integer does not fit in 64 bits");
  return value;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) refuse("integer division or modulo by zero");
  if (b == -1) {
    std::int64_t negated = 0;
    const bool overflows = __builtin_sub_overflow(std::int64_t{0}, a, &negated);
    return checked_whole(overflows, negated);
  }
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  for (bool overflows = false; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) {
      overflows = __builtin_mul_overflow(result, base, &result);
      if (overflows) return checked_whole(true, 0);
    }
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return checked_whole(true, 0);
  }
  return result;
}

Value of_wholes(Operator operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  if (operation == Operator::add) overflows = __builtin_add_overflow(a, b, &result);
  if (operation == Operator::subtract) overflows = __builtin_sub_overflow(a, b, &result);
  if (operation == Operator::multiply) overflows = __builtin_mul_overflow(a, b, &result);
  if (operation == Operator::add || operation == Operator::subtract ||
      operation == Operator::multiply) {
    return checked_whole(overflows, result);
  }
  if (operation == Operator::floor_divide) return floor_divide(a, b);
  if (operation == Operator::modulo) return b == -1 ? 0 : a - floor_divide(a, b) * b;
  if (operation == Operator::power && b >= 0) return power(a, b);
  if (operation == Operator::divide && b == 0) refuse("division by zero");
  const auto x = static_cast<double>(a);
  const auto y = static_cast<double>(b);
  return operation == Operator::divide ? x / y : std::pow(x, y);
}

Value of_reals(Operator operation, double a, double b) {
  if (operation == Operator::add) return a + b;
  if (operation == Operator::subtract) return a - b;
  if (operation == Operator::multiply) return a * b;
  if (operation == Operator::power) return std::pow(a, b);
  if (b == 0) refuse("float division by zero");
  if (operation == Operator::divide) return a / b;
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return operation == Operator::modulo ? rest : std::floor((a - rest) / b + 0.5);
}

}  // namespace

Value Interpreter::calculate(Operator operation, const Value& left, const Value& right) {
  std::int64_t whole_left = 0;
  std::int64_t whole_right = 0;
  const bool wholes = left.as_whole(whole_left) && right.as_whole(whole_right);
  if (wholes) return of_wholes(operation, whole_left, whole_right);
  double real_left = 0;
  double real_right = 0;
  if (left.as_real(real_left) && right.as_real(real_right)) {
    return of_reals(operation, real_left, real_right);
  }
  if (operation == Operator::modulo && left.text() != nullptr) {
    return format_percent(*this, *left.text(), right);
  }
  if (operation == Operator::add && left.text() != nullptr && right.text() != nullptr) {
    return added(*left.text(), *right.text());
  }
  if (operation == Operator::add && left.list() != nullptr && right.list() != nullptr &&
      left.type_name() == right.type_name() && left.sequence() != nullptr) {
    spend_steps(std::ssize(left.list()->items) + std::ssize(right.list()->items));
    List sum{left.list()->items, left.list()->kind};
    sum.items.insert(sum.items.end(), right.list()->items.begin(), right.list()->items.end());
    return sum;
  }
  if (operation == Operator::multiply && right.as_whole(whole_right))
    return repeated(left, whole_right, right);
  if (operation == Operator::multiply && left.as_whole(whole_left))
    return repeated(right, whole_left, left);
  refuse_operands(symbol_of(operation), left, right);
}

Text Interpreter::added(const Text& left, const Text& right) {
  spend_text(left.bytes.size() + right.bytes.size());
  const auto escaped = [&](const Text& text) {
    const bool escapes = !text.markup && (left.markup || right.markup);
    return escapes ? text.with(escape_html(text.bytes)) : text;
  };
  Text sum = escaped(left);
  sum.append(escaped(right));
  sum.markup = left.markup || right.markup;
  return sum;
}

Value Interpreter::repeated(const Value& value, std::int64_t times, const Value& factor) {
  const auto count = static_cast<std::size_t>(std::max(times, std::int64_t{0}));
  if (const Text* const text = value.text()) {
    Text all;
    all.markup = text->markup;
    for (std::size_t i = 0; i < count; ++i) {
      spend_text(text->bytes.size() + 1);
      all.append(*text);
    }
    return all;
  }
  if (value.sequence() == nullptr) refuse_operands("*", value, factor);
  List all{{}, value.list()->kind};
  for (std::size_t i = 0; i < count; ++i) {
    spend_steps(std::ssize(value.list()->items) + 1);
    all.items.insert(all.items.end(), value.list()->items.begin(), value.list()->items.end());
  }
  return all;
}

bool Interpreter::holds(Operator operation, const Value& left, const Value& right) {
  if (operation == Operator::equal || operation == Operator::not_equal) {
    return same(left, right) == (operation == Operator::equal);
  }
  if (operation == Operator::in) return contains(right, left);
  if (operation == Operator::not_in) return !contains(right, left);
  spend_steps(std::min(left.weight(), right.weight()) / 16);
  const int order = compare(left, right, operation);
  if (operation == Operator::less) return order < 0;
  if (operation == Operator::less_equal) return order <= 0;
  return operation == Operator::greater ? order > 0 : order >= 0;
}

bool Interpreter::same(const Value& a, const Value& b) {
  spend_steps(std::min(a.weight(), b.weight()) / 16);
  return equal(a, b);
}

bool Interpreter::contains(const Value& container, const Value& value) {
  if (const Text* const text = container.text()) {
    if (value.text() == nullptr) {
      refuse("'in <string>' requires string as left operand, not ", value.type_name());
    }
    spend_steps(std::ssize(text->bytes) / 64);
    return text->bytes.find(value.text()->bytes) != std::string::npos;
  }
  if (const Dict* const dict = container.dict()) {
    spend_steps(std::ssize(dict->entries) / 2);
    return dict->find(value) != nullptr;
  }
  if (container.list() == nullptr && !container.is_undefined()) {
    refuse("argument of type '", container.type_name(), "' is not iterable");
  }
  return std::ranges::any_of(iterate(container),
                             [&](const Value& item) { return same(item, value); });
}

}  // namespace dstrain::jinja
