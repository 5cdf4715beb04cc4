#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "runtime/data/jinja/interpreter.h"
#include "runtime/data/jinja/python_text.h"

/// Python's two ways to format text: "%s" % x, and "{}".format(x).
namespace dstrain::jinja {
namespace {

constexpr std::size_t width_max = 1'000'000;

/// How a value is written: [[fill]align][sign][#][0][width][,][.precision][type].
struct Spec {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool alternate = false;
  char group = '\0';  ///< between thousands; NUL: nothing
  std::size_t width = 0;
  std::optional<std::size_t> precision{};
  char type = '\0';
};

std::size_t take_number(std::string_view& text) {
  std::size_t number = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    number = number * 10 + static_cast<std::size_t>(text.front() - '0');
    if (number > width_max) refuse("a width or precision is too large");
    text.remove_prefix(1);
  }
  return number;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

bool is_align(std::string_view text) {
  return !text.empty() && std::string_view("<>^=").find(text.front()) != std::string_view::npos;
}

Spec parse_spec(std::string_view text) {
  Spec spec;
  const std::string all(text);
  if (!text.empty() && is_align(text.substr(first_size(text)))) {
    spec.fill = text.substr(0, first_size(text));
    text.remove_prefix(first_size(text));
  }
  if (is_align(text)) {
    spec.align = text.front();
    text.remove_prefix(1);
  }
  if (text.starts_with('+') || text.starts_with('-') || text.starts_with(' ')) {
    spec.sign = text.front();
    text.remove_prefix(1);
  }
  spec.alternate = take(text, '#');
  if (take(text, '0') && spec.align == '\0') {
    spec.fill = "0";
    spec.align = '=';
  }
  spec.width = take_number(text);
  if (text.starts_with(',') || text.starts_with('_')) {
    spec.group = text.front();
    text.remove_prefix(1);
  }
  if (take(text, '.')) spec.precision = take_number(text);
  if (!text.empty()) {
    spec.type = text.front();
    text.remove_prefix(1);
  }
  if (!text.empty()) refuse("Invalid format specifier '", all, "'");
  return spec;
}

/// The text with the fill characters around it; `prefix` bytes stay before those of '='.
Text with_padding(const Text& text, const Spec& spec, char align, std::size_t prefix) {
  const std::size_t size = length(text.bytes);
  const std::size_t missing = spec.width > size ? spec.width - size : 0;
  const std::size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const auto fill = [&](std::size_t count) {
    if (spec.fill.size() == 1) return std::string(count, spec.fill.front());
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += spec.fill;
    return all;
  };
  Text out = text.part(0, align == '=' ? prefix : 0);
  out.append(fill(left));
  out.append(text.part(align == '=' ? prefix : 0, text.bytes.size()));
  out.append(fill(missing - left));
  return out;
}

std::string with_groups(std::string digits, char between) {
  const std::size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (std::size_t at = end; at > 3; at -= 3) digits.insert(at - 3, 1, between);
  return digits;
}

std::string digits_of(double number, const Spec& spec) {
  const char type =
      spec.type == '\0' || spec.type == '%' ? (spec.type == '%' ? 'f' : 'g') : spec.type;
  if (!std::isfinite(number)) return std::isnan(number) ? "nan" : "inf";
  const auto precision = static_cast<int>(std::min<std::size_t>(spec.precision.value_or(6), 400));
  const std::array<char, 6> form{'%', '.', '*', type, '\0'};
  std::array<char, 800> buffer{};
  const double shown = spec.type == '%' ? number * 100 : number;
  std::snprintf(buffer.data(), buffer.size(), form.data(), precision, shown);
  return buffer.data();
}

/// The precision of an integer in % is its least number of digits.
std::string zeros(const std::string& digits, const Spec& spec) {
  const std::size_t size = spec.precision.value_or(0);
  return std::string(size > digits.size() ? size - digits.size() : 0, '0') + digits;
}

std::string digits_of(std::uint64_t whole, const Spec& spec) {
  switch (spec.type) {
    case 'x':
      return fmt::format("{}{:x}", spec.alternate ? "0x" : "", whole);
    case 'X':
      return fmt::format("{}{:X}", spec.alternate ? "0X" : "", whole);
    case 'o':
      return fmt::format("{}{:o}", spec.alternate ? "0o" : "", whole);
    case 'b':
      return fmt::format("{}{:b}", spec.alternate ? "0b" : "", whole);
    case '\0':
    case 'd':
    case 'n':
      return zeros(std::to_string(whole), spec);
    default:
      refuse("the format code '", std::string(1, spec.type), "' is not implemented");
  }
}

Text number_text(const Value& value, const Spec& spec) {
  const bool real_type =
      spec.type != '\0' && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  std::int64_t whole = 0;
  std::string digits;
  bool negative = false;
  if (!real_type && value.as_whole(whole)) {
    negative = whole < 0;
    const auto magnitude = static_cast<std::uint64_t>(whole);
    digits = digits_of(negative ? 0 - magnitude : magnitude, spec);
  } else {
    double number = 0;
    if (!value.as_real(number) || (!real_type && spec.type != '\0')) {
      refuse("Unknown format code '", std::string(1, spec.type), "' for object of type '",
             value.type_name(), "'");
    }
    negative = std::signbit(number);
    digits = spec.type == '\0' && !spec.precision ? float_text(std::fabs(number))
                                                  : digits_of(std::fabs(number), spec);
  }
  if (spec.group != '\0') digits = with_groups(digits, spec.group);
  if (spec.type == '%') digits += '%';
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  return with_padding({sign + digits}, spec, spec.align == '\0' ? '>' : spec.align, sign.size());
}

Text formatted(const Value& value, const Spec& spec) {
  const bool is_number = value.whole() != nullptr || value.real() != nullptr ||
                         (value.boolean() != nullptr && spec.type != '\0' && spec.type != 's');
  if (is_number && spec.type != 's') return number_text(value, spec);
  if (spec.type != '\0' && spec.type != 's') {
    refuse("Unknown format code '", std::string(1, spec.type), "' for object of type '",
           value.type_name(), "'");
  }
  Text text = to_text(value);
  if (spec.precision && length(text.bytes) > *spec.precision) {
    text = sliced(text, 0, static_cast<std::int64_t>(*spec.precision), 1);
  }
  return with_padding(text, spec, spec.align == '\0' ? '<' : spec.align, 0);
}

/// The values of a format string in their order, or by name.
class FormatValues {
 public:
  explicit FormatValues(const Value& values) : values_(values) {
    const List* const list = values.list();
    if (list != nullptr && list->kind == List::Kind::tuple)
      items_ = list->items;
    else
      items_ = {values};
  }
  const Value& next() {
    if (next_ == items_.size()) refuse("not enough arguments for format string");
    return items_[next_++];
  }
  const Value& named(std::string_view name) {
    by_name_ = true;
    const Value* const found = values_.dict() == nullptr ? nullptr : values_.dict()->at(name);
    if (found == nullptr) refuse("the format string names '", std::string(name), "'");
    return *found;
  }
  void check_all_used() const {
    const bool is_container = values_.dict() != nullptr || values_.list() != nullptr;
    const bool is_tuple =
        is_container && values_.list() != nullptr && values_.list()->kind == List::Kind::tuple;
    if (by_name_ || next_ == items_.size() || (is_container && !is_tuple)) return;
    refuse("not all arguments converted during string formatting");
  }

 private:
  const Value& values_;
  std::vector<Value> items_;
  std::size_t next_ = 0;
  bool by_name_ = false;
};

/// A conversion of %, behind the sign; moves `rest` behind it.
Text convert(std::string_view& rest, FormatValues& values) {
  const Value* value = nullptr;
  if (take(rest, '(')) {
    const std::size_t close = std::min(rest.find(')'), rest.size());
    value = &values.named(rest.substr(0, close));
    rest.remove_prefix(std::min(close + 1, rest.size()));
  }
  Spec spec;
  spec.align = '>';
  for (; !rest.empty() && std::string_view("-+ 0#").find(rest.front()) != std::string_view::npos;
       rest.remove_prefix(1)) {
    const char flag = rest.front();
    if (flag == '-') spec.align = '<';
    if (flag == '+' || (flag == ' ' && spec.sign == '-')) spec.sign = flag;
    if (flag == '#') spec.alternate = true;
    if (flag == '0' && spec.align != '<') spec.fill = "0", spec.align = '=';
  }
  if (spec.align == '<') spec.fill = " ";
  spec.width = take_number(rest);
  if (take(rest, '.')) spec.precision = take_number(rest);
  if (rest.empty()) refuse("incomplete format");
  spec.type = rest.front();
  rest.remove_prefix(1);
  if (value == nullptr) value = &values.next();
  if (spec.type == 's' || spec.type == 'r') {
    if (spec.align == '=') spec.fill = " ", spec.align = '>';
    const Value shown = spec.type == 'r' ? Value(Text{to_repr(*value)}) : *value;
    spec.type = 's';
    return formatted(shown, spec);
  }
  if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
  double number = 0;
  if (std::string_view("dxXoeEfFgG").find(spec.type) == std::string_view::npos) {
    refuse("unsupported format character '", std::string(1, spec.type), "'");
  }
  if (!value->as_real(number)) {
    refuse("%", std::string(1, spec.type), " format: a real number is required, not ",
           value->type_name());
  }
  if (spec.type == 'd' && value->real() != nullptr && std::fabs(number) < 0x1p63) {
    return number_text(static_cast<std::int64_t>(number), spec);
  }
  return number_text(*value, spec);
}

/// The value of a field of str.format: the next argument, one by number, or one by name.
Value format_field(std::string_view field, const Arguments& arguments, std::size_t& next) {
  std::string_view rest = field;
  const std::size_t index = field.empty() ? next++ : take_number(rest);
  if (rest.empty()) {
    if (index < arguments.positional.size()) return arguments.positional[index];
    refuse("Replacement index ", std::to_string(index), " out of range for positional args tuple");
  }
  const auto named =
      std::ranges::find(arguments.named, field, &std::pair<std::string, Value>::first);
  if (named == arguments.named.end()) {
    refuse("the format string names '", std::string(field), "', which is no argument");
  }
  return named->second;
}

}  // namespace

Text format_percent(Interpreter& interpreter, const Text& format, const Value& given) {
  if (format.markup) refuse("% of a text that is marked as safe is not implemented");
  interpreter.spend_text(format.bytes.size() + static_cast<std::size_t>(given.weight()));
  FormatValues values(given);
  Text out;
  std::size_t begin = 0;
  for (std::size_t at = format.bytes.find('%'); at != std::string::npos;
       at = format.bytes.find('%', begin)) {
    out.append(format.part(begin, at));
    std::string_view rest = std::string_view(format.bytes).substr(at + 1);
    if (take(rest, '%')) {
      out.append("%");
    } else {
      const Text part = convert(rest, values);
      interpreter.spend_text(part.bytes.size());
      out.append(part);
    }
    begin = format.bytes.size() - rest.size();
  }
  out.append(format.part(begin, format.bytes.size()));
  values.check_all_used();
  return out;
}

Text format_braces(Interpreter& interpreter, const Text& format, const Arguments& arguments) {
  if (format.markup) refuse("format() of a text that is marked as safe is not implemented");
  Text out;
  const std::string_view bytes = format.bytes;
  std::size_t next = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.append(format.part(at, brace));
    if (brace == bytes.size()) break;
    if (bytes.substr(brace).starts_with("{{") || bytes.substr(brace).starts_with("}}")) {
      out.append(bytes.substr(brace, 1));
      at = brace + 2;
      continue;
    }
    const std::size_t close = bytes.find('}', brace);
    if (bytes[brace] == '}' || close == std::string_view::npos) {
      refuse("a single brace in a format string");
    }
    std::string_view field = bytes.substr(brace + 1, close - brace - 1);
    const std::size_t colon = std::min(field.find(':'), field.size());
    const std::string_view spec = field.substr(std::min(colon + 1, field.size()));
    field = field.substr(0, colon);
    const bool shows_repr = field.ends_with("!r");
    if (shows_repr || field.ends_with("!s")) field.remove_suffix(2);
    const Value value = format_field(field, arguments, next);
    interpreter.spend_text(static_cast<std::size_t>(value.weight()));
    const Text part = formatted(shows_repr ? Value(Text{to_repr(value)}) : value, parse_spec(spec));
    interpreter.spend_text(part.bytes.size());
    out.append(part);
    at = close + 1;
  }
  return out;
}

}  // namespace dstrain::jinja
