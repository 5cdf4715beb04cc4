#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "runtime/data/jinja/interpreter.h"
#include "runtime/data/jinja/python_text.h"

/// The filters of Jinja, and of transformers where those differ.
namespace dstrain::jinja {
namespace {

/// A text as it is, which may be markup; any other value as a text.
Text soft_text(Interpreter& interpreter, const Value& input) {
  if (input.text() == nullptr) return interpreter.text_of(input);
  interpreter.spend_text(input.text()->bytes.size());
  return *input.text();
}

Value filter_of_text(Interpreter& interpreter,
                     const Value& input,
                     std::string (*change)(std::string_view)) {
  const Text text = soft_text(interpreter, input);
  interpreter.spend_steps(std::ssize(text.bytes));
  return text.with(change(text.bytes));
}

/// An attribute of items, "a.b.0"; none: the items themselves.
class Getter {
 public:
  Getter(Interpreter& interpreter, const Value* path, const Value* other = nullptr)
      : interpreter_(interpreter), other_(other) {
    if (path == nullptr || path->is_none()) return;
    std::int64_t index = 0;
    if (path->as_whole(index)) {
      parts_.emplace_back(index);
      return;
    }
    if (path->text() == nullptr) refuse("an attribute is named by a string or an integer");
    for (const Text& part : split(*path->text(), ".", -1)) {
      const bool is_index = !part.bytes.empty() && part.bytes.size() < 10 &&
                            part.bytes.find_first_not_of("0123456789") == std::string::npos;
      parts_.push_back(is_index ? Value(std::int64_t{std::atoll(part.bytes.c_str())})
                                : Value(part));
    }
  }

  Value operator()(const Value& item) const {
    Value value = item;
    for (const Value& part : parts_) {
      value = interpreter_.item(value, part);
      if (value.is_undefined() && other_ != nullptr) return *other_;
    }
    return value;
  }

 private:
  Interpreter& interpreter_;
  const Value* other_;
  std::vector<Value> parts_;
};

/// What sorting and searching compare: texts without case, unless it counts.
Value sort_key(Interpreter& interpreter, const Value& value, bool case_sensitive) {
  if (case_sensitive || value.text() == nullptr) return value;
  interpreter.spend_steps(std::ssize(value.text()->bytes));
  return Text{lower(value.text()->bytes)};
}

/// Sorts items by their keys, stably.
std::vector<Value> sorted(Interpreter& interpreter,
                          std::vector<Value> items,
                          const std::vector<Value>& keys,
                          bool reverse) {
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    interpreter.spend_steps(1);
    // Python compares lists of keys, in which equal ones need no order.
    if (interpreter.same(keys[a], keys[b])) return false;
    return reverse ? compare(keys[b], keys[a], Operator::less) < 0
                   : compare(keys[a], keys[b], Operator::less) < 0;
  });
  std::vector<Value> out;
  out.reserve(order.size());
  for (const std::size_t index : order) out.push_back(std::move(items[index]));
  return out;
}

std::vector<Value> keys_of(Interpreter& interpreter,
                           const std::vector<Value>& items,
                           const Getter& get,
                           bool with_case) {
  std::vector<Value> keys;
  keys.reserve(items.size());
  for (const Value& item : items) keys.push_back(sort_key(interpreter, get(item), with_case));
  return keys;
}

Value absolute(Interpreter&, const Value& input, const Arguments&) {
  std::int64_t whole = 0;
  if (input.as_whole(whole)) {
    if (whole == std::numeric_limits<std::int64_t>::min()) refuse("abs(): it needs 65 bits");
    return whole < 0 ? -whole : whole;
  }
  double number = 0;
  if (!input.as_real(number)) refuse("bad operand type for abs(): '", input.type_name(), "'");
  return std::fabs(number);
}

Value attr(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("attr", arguments, {"name"});
  const std::string name = given.required_text(0).bytes;
  // Unlike a dot, the filter does not look at items.
  if (input.dict() != nullptr && find_method(input, name) == nullptr) {
    return Value::undefined("'dict object' has no attribute '" + name + "'");
  }
  return interpreter.attribute(input, name);
}

Value batch(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("batch", arguments, {"linecount", "fill_with"});
  const std::int64_t size = given.required(0).is_undefined() ? 0 : given.whole(0, 0);
  if (size < 1) refuse("batch(): the size is not positive");
  std::vector<Value> batches;
  List current;
  for (Value& item : interpreter.iterate(input)) {
    if (std::ssize(current.items) == size) batches.emplace_back(std::exchange(current, {}));
    current.items.push_back(std::move(item));
  }
  if (!current.items.empty()) {
    while (given[1] != nullptr && !given[1]->is_none() && std::ssize(current.items) < size) {
      interpreter.spend_steps(1);
      current.items.push_back(*given[1]);
    }
    batches.emplace_back(std::move(current));
  }
  return make_list(std::move(batches), List::Kind::generator);
}

Value center(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("center", arguments, {"width"});
  Arguments width;
  width.positional.emplace_back(given.whole(0, 80));
  const Value text = interpreter.text_of(input);
  return find_method(text, "center")(interpreter, text, width);
}

Value length_of(Interpreter& interpreter, const Value& input, const Arguments&) {
  if (const Text* const text = input.text()) {
    interpreter.spend_steps(std::ssize(text->bytes) / 16);
    return static_cast<std::int64_t>(length(text->bytes));
  }
  if (const Dict* const dict = input.dict()) return std::int64_t{std::ssize(dict->entries)};
  const List* const list = input.list();
  if (list != nullptr && list->kind != List::Kind::generator) {
    return std::int64_t{std::ssize(list->items)};
  }
  if (input.loop() != nullptr) return std::int64_t{std::ssize(*input.loop()->items)};
  if (!input.is_undefined()) refuse("object of type '", input.type_name(), "' has no len()");
  return std::int64_t{0};
}

Value with_default(Interpreter&, const Value& input, const Arguments& arguments) {
  const Parameters given("default", arguments, {"default_value", "boolean"});
  const bool missing = input.is_undefined() || (given.truth(1, false) && !input.truth());
  if (!missing) return input;
  return given[0] == nullptr ? Value(Text{}) : *given[0];
}

Value dictsort(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = given.text(1, "key").bytes;
  if (by != "key" && by != "value") refuse("You can only sort by either \"key\" or \"value\"");
  if (input.dict() == nullptr) {
    if (const auto* const missing = std::get_if<Undefined>(&input.form())) {
      refuse(*missing->reason);
    }
    refuse("'", input.type_name(), "' object has no items");
  }
  std::vector<Value> items;
  std::vector<Value> keys;
  for (const auto& [key, value] : input.dict()->entries) {
    items.push_back(make_list({key, value}, List::Kind::tuple));
    keys.push_back(sort_key(interpreter, by == "key" ? key : value, given.truth(0, false)));
  }
  return make_list(sorted(interpreter, std::move(items), keys, given.truth(2, false)));
}

Value escape(Interpreter& interpreter, const Value& input, const Arguments&) {
  Text text = interpreter.text_of(input);
  const bool safe = input.text() != nullptr && input.text()->markup;
  if (!safe) text = text.with(escape_html(text.bytes));
  text.markup = true;
  return text;
}

Value force_escape(Interpreter& interpreter, const Value& input, const Arguments&) {
  Text text = interpreter.text_of(input);
  text = text.with(escape_html(text.bytes));
  text.markup = true;
  return text;
}

Value safe(Interpreter& interpreter, const Value& input, const Arguments&) {
  Text text = interpreter.text_of(input);
  text.markup = true;
  return text;
}

Value first(Interpreter& interpreter, const Value& input, const Arguments&) {
  if (input.text() != nullptr && !input.text()->bytes.empty()) {
    Text one = character(*input.text(), 0);
    one.markup = false;
    return one;
  }
  const std::vector<Value> items = interpreter.iterate(input);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Value last(Interpreter& interpreter, const Value& input, const Arguments&) {
  if (input.list() != nullptr && input.list()->kind == List::Kind::generator) {
    refuse("'generator' object is not reversible");
  }
  if (const Text* const text = input.text(); text != nullptr && !text->bytes.empty()) {
    Text one = text->part(text->bytes.size() - last_size(text->bytes), text->bytes.size());
    one.markup = false;
    return one;
  }
  const std::vector<Value> items = interpreter.iterate(input);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

/// More digits than Python takes for an integer.
constexpr std::size_t digits_max = 5000;

/// Python's float(text) and int(text); false: it is no number.
bool parse_real(const Text& text, double& number) {
  if (text.bytes.size() > digits_max) return false;
  std::string digits = strip(text, {}, Ends::both).bytes;
  std::erase(digits, '_');
  const std::string word = lower(digits);
  const bool is_word = word.ends_with("inf") || word.ends_with("nan") || word.ends_with("infinity");
  if (digits.empty() ||
      (!is_word && digits.find_first_not_of("0123456789+-.eE") != std::string::npos)) {
    return false;
  }
  char* end = nullptr;
  number = std::strtod(digits.c_str(), &end);
  return *end == '\0';
}

bool parse_whole(const Text& text, std::int64_t base, std::int64_t& number) {
  if (text.bytes.size() > digits_max) return false;
  std::string digits = strip(text, {}, Ends::both).bytes;
  std::erase(digits, '_');
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  const std::string start = lower(digits.substr(0, 2));
  const bool prefixed =
      (base == 16 && start == "0x") || (base == 8 && start == "0o") || (base == 2 && start == "0b");
  if (prefixed) digits.erase(0, 2);
  if (base < 2 || base > 36 || digits.empty() || digits.front() == '-') return false;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, static_cast<int>(base));
  if (error == std::errc::result_out_of_range) refuse("an integer does not fit in 64 bits");
  if (negative) number = -number;
  return error == std::errc{} && end == digits.data() + digits.size();
}

Value to_real(Interpreter&, const Value& input, const Arguments& arguments) {
  const Parameters given("float", arguments, {"default"});
  double number = 0;
  if (const auto* const missing = std::get_if<Undefined>(&input.form())) refuse(*missing->reason);
  if (input.as_real(number)) return number;
  if (input.text() != nullptr && parse_real(*input.text(), number)) return number;
  return given[0] == nullptr ? Value(0.0) : *given[0];
}

Value to_whole(Interpreter&, const Value& input, const Arguments& arguments) {
  const Parameters given("int", arguments, {"default", "base"});
  std::int64_t whole = 0;
  double number = 0;
  if (const auto* const missing = std::get_if<Undefined>(&input.form())) refuse(*missing->reason);
  if (input.as_whole(whole)) return whole;
  const bool is_text = input.text() != nullptr;
  if (is_text && parse_whole(*input.text(), given.whole(1, 10), whole)) return whole;
  const bool is_number = is_text ? parse_real(*input.text(), number) : input.as_real(number);
  if (is_number && std::fabs(number) < 0x1p63) return static_cast<std::int64_t>(number);
  return given[0] == nullptr ? Value(std::int64_t{0}) : *given[0];
}

Value format(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty()) {
    refuse("can't handle positional and keyword arguments at the same time");
  }
  if (arguments.named.empty()) {
    return format_percent(interpreter, interpreter.text_of(input),
                          make_list(arguments.positional, List::Kind::tuple));
  }
  Dict names;
  for (const auto& [name, value] : arguments.named) names.set(Text{name}, value);
  return format_percent(interpreter, interpreter.text_of(input), names);
}

Value groupby(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("groupby", arguments, {"attribute", "default", "case_sensitive"});
  const Getter get(interpreter, &given.required(0), given[1]);
  const bool with_case = given.truth(2, false);
  std::vector<Value> items = interpreter.iterate(input);
  items = sorted(interpreter, items, keys_of(interpreter, items, get, with_case), false);
  std::vector<Value> groups;
  for (std::size_t i = 0; i < items.size();) {
    const Value key = get(items[i]);
    List members;
    for (; i < items.size() && interpreter.same(sort_key(interpreter, get(items[i]), with_case),
                                                sort_key(interpreter, key, with_case));
         ++i) {
      members.items.push_back(items[i]);
    }
    List group{{key, members}, List::Kind::tuple};
    group.is_group = true;
    groups.emplace_back(std::move(group));
  }
  return make_list(std::move(groups));
}

Value indent(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("indent", arguments, {"width", "first", "blank"});
  const bool is_text = given[0] != nullptr && given[0]->text() != nullptr;
  Text indentation;
  if (is_text) {
    indentation = *given[0]->text();
  } else {
    const auto width = static_cast<std::size_t>(std::max(given.whole(0, 4), std::int64_t{0}));
    interpreter.spend_text(width);
    indentation.bytes.assign(width, ' ');
  }
  if (input.text() == nullptr) refuse("indent() takes a string");
  Text whole = soft_text(interpreter, input);
  whole.append("\n");
  const std::vector<Text> lines = split_lines(whole, false);
  Text out;
  out.markup = whole.markup;
  if (given.truth(1, false)) out.append(indentation);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n");
    if (i > 0 && (given.truth(2, false) || !lines[i].bytes.empty())) out.append(indentation);
    interpreter.spend_text(indentation.bytes.size() + lines[i].bytes.size());
    out.append(lines[i]);
  }
  return out;
}

Value items(Interpreter& interpreter, const Value& input, const Arguments&) {
  if (input.is_undefined()) return make_list({}, List::Kind::generator);
  if (input.dict() == nullptr) refuse("Can only get item pairs from a mapping.");
  std::vector<Value> pairs;
  interpreter.spend_steps(std::ssize(input.dict()->entries));
  for (const auto& [key, value] : input.dict()->entries) {
    pairs.push_back(make_list({key, value}, List::Kind::tuple));
  }
  return make_list(std::move(pairs), List::Kind::generator);
}

Value join(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("join", arguments, {"d", "attribute"});
  const Text separator = given[0] == nullptr ? Text{} : interpreter.text_of(*given[0]);
  const Getter get(interpreter, given[1]);
  Text out;
  bool is_first = true;
  for (const Value& item : interpreter.iterate(input)) {
    if (!is_first) out.append(separator);
    is_first = false;
    interpreter.spend_text(separator.bytes.size());
    out.append(interpreter.text_of(get(item)));
  }
  return out;
}

Value as_list(Interpreter& interpreter, const Value& input, const Arguments&) {
  return make_list(interpreter.iterate(input));
}

/// The rest of a filter's arguments, which are those of another filter or a test.
Arguments behind(const Arguments& arguments, std::size_t count) {
  Arguments rest;
  rest.named = arguments.named;
  rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(count),
                         arguments.positional.end());
  return rest;
}

Value map(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  std::vector<Value> out;
  if (!input.truth()) return make_list({}, List::Kind::generator);  // also none
  if (arguments.positional.empty()) {
    const Parameters given("map", arguments, {"attribute", "default"});
    const Getter get(interpreter, &given.required(0), given[1]);
    for (const Value& item : interpreter.iterate(input)) out.push_back(get(item));
  } else {
    const Text* const name = arguments.positional.front().text();
    if (name == nullptr) refuse("map() needs the name of a filter");
    for (const Value& item : interpreter.iterate(input)) {
      out.push_back(interpreter.filtered(item, name->bytes, behind(arguments, 1)));
    }
  }
  return make_list(std::move(out), List::Kind::generator);
}

/// The items whose test, with the first argument as its name, has the result `wanted`.
Value selected(Interpreter& interpreter,
               const Value& input,
               const Arguments& arguments,
               bool by_attribute,
               bool wanted) {
  if (!input.truth()) return make_list({}, List::Kind::generator);  // also none
  const std::size_t names = by_attribute ? 1 : 0;
  if (arguments.positional.size() < names) refuse("Missing parameter for attribute name");
  const Getter get(interpreter, by_attribute ? &arguments.positional.front() : nullptr);
  const bool has_test = arguments.positional.size() > names;
  const Text* const name = has_test ? arguments.positional[names].text() : nullptr;
  if (has_test && name == nullptr) refuse("a test is named by a string");
  std::vector<Value> out;
  for (Value& item : interpreter.iterate(input)) {
    const Value value = get(item);
    bool holds = value.truth();
    if (has_test) {
      holds = interpreter.tested(value, name->bytes, behind(arguments, names + 1));
    }
    if (holds == wanted) out.push_back(std::move(item));
  }
  return make_list(std::move(out), List::Kind::generator);
}

Value select(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return selected(interpreter, input, arguments, false, true);
}
Value reject(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return selected(interpreter, input, arguments, false, false);
}
Value select_attr(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return selected(interpreter, input, arguments, true, true);
}
Value reject_attr(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return selected(interpreter, input, arguments, true, false);
}

Value extreme(Interpreter& interpreter,
              const Value& input,
              const Arguments& arguments,
              bool greatest) {
  const Parameters given("min", arguments, {"case_sensitive", "attribute"});
  const std::vector<Value> all = interpreter.iterate(input);
  if (all.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const auto keys = keys_of(interpreter, all, Getter(interpreter, given[1]), given.truth(0, false));
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    interpreter.spend_steps(1 + std::min(keys[i].weight(), keys[best].weight()) / 16);
    const bool better = greatest ? compare(keys[i], keys[best], Operator::greater) > 0
                                 : compare(keys[i], keys[best], Operator::less) < 0;
    if (better) best = i;
  }
  return all[best];
}

Value min(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return extreme(interpreter, input, arguments, false);
}
Value max(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  return extreme(interpreter, input, arguments, true);
}

Value replace_text(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("replace", arguments, {"old", "new", "count"});
  Arguments method;
  method.positional = {interpreter.text_of(given.required(0)),
                       interpreter.text_of(given.required(1))};
  const bool counted = given[2] != nullptr && !given[2]->is_none();
  method.positional.emplace_back(counted ? given.whole(2, -1) : std::int64_t{-1});
  const Value text = interpreter.text_of(input);
  return find_method(text, "replace")(interpreter, text, method);
}

Value reverse(Interpreter& interpreter, const Value& input, const Arguments&) {
  if (const Text* const text = input.text()) {
    interpreter.spend_steps(2 * std::ssize(text->bytes));
    return sliced(*text, static_cast<std::int64_t>(length(text->bytes)) - 1, -1, -1);
  }
  std::vector<Value> all = interpreter.iterate(input);
  std::ranges::reverse(all);
  return make_list(std::move(all), List::Kind::generator);
}

/// Python's round of an integer: to even if it is half way.
std::int64_t rounded(std::int64_t whole, std::int64_t precision) {
  if (precision >= 0) return whole;
  if (precision < -18) return 0;
  std::int64_t unit = 1;
  for (std::int64_t i = precision; i < 0; ++i) unit *= 10;
  const std::int64_t rest = (whole % unit + unit) % unit;
  const std::int64_t below = whole / unit - (whole % unit < 0 ? 1 : 0);
  const bool up = rest > unit - rest || (rest == unit - rest && below % 2 != 0);
  std::int64_t result = 0;
  if (__builtin_mul_overflow(below + (up ? 1 : 0), unit, &result)) {
    refuse("an integer does not fit in 64 bits");
  }
  return result;
}

Value round(Interpreter&, const Value& input, const Arguments& arguments) {
  const Parameters given("round", arguments, {"precision", "method"});
  const std::int64_t precision = given.whole(0, 0);
  const std::string method = given.text(1, "common").bytes;
  if (method != "common" && method != "ceil" && method != "floor") {
    refuse("method must be common, ceil or floor");
  }
  std::int64_t whole = 0;
  if (method == "common" && input.as_whole(whole)) return rounded(whole, precision);
  double number = 0;
  if (!input.as_real(number)) refuse("type ", input.type_name(), " cannot be rounded");
  if (precision > 300 || precision < -300) refuse("round(): the precision is out of range");
  if (method == "common" && precision >= 0) {
    // printf rounds the exact value of the number, as Python does.
    std::array<char, 700> digits{};
    std::snprintf(digits.data(), digits.size(), "%.*f", static_cast<int>(precision), number);
    return std::strtod(digits.data(), nullptr);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = number * scale;
  return (method == "ceil"    ? std::ceil(scaled)
          : method == "floor" ? std::floor(scaled)
                              : std::nearbyint(scaled)) /
         scale;
}

Value slice(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("slice", arguments, {"slices", "fill_with"});
  const std::int64_t slices = given.required(0).is_undefined() ? 0 : given.whole(0, 0);
  if (slices < 1) refuse("slice(): the number of slices is not positive");
  const std::vector<Value> all = interpreter.iterate(input);
  const std::int64_t size = std::ssize(all) / slices;
  const std::int64_t longer = std::ssize(all) % slices;
  std::vector<Value> out;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < slices; ++i) {
    interpreter.spend_steps(1);
    const std::int64_t end = begin + size + (i < longer ? 1 : 0);
    List part{{all.begin() + begin, all.begin() + end}};
    const bool fills = given[1] != nullptr && !given[1]->is_none() && i >= longer;
    if (fills) part.items.push_back(*given[1]);
    out.emplace_back(std::move(part));
    begin = end;
  }
  return make_list(std::move(out), List::Kind::generator);
}

Value sort(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<Value> all = interpreter.iterate(input);
  std::vector<Value> keys;
  if (given[2] != nullptr && given[2]->text() != nullptr) {
    // "a,b": several attributes.
    std::vector<Getter> getters;
    for (const Text& path : split(*given[2]->text(), ",", -1)) {
      const Value name(path);
      getters.emplace_back(interpreter, &name);
    }
    for (const Value& item : all) {
      List key;
      for (const Getter& get : getters)
        key.items.push_back(sort_key(interpreter, get(item), given.truth(1, false)));
      keys.emplace_back(std::move(key));
    }
  } else {
    keys = keys_of(interpreter, all, Getter(interpreter, given[2]), given.truth(1, false));
  }
  return make_list(sorted(interpreter, std::move(all), keys, given.truth(0, false)));
}

Value string(Interpreter& interpreter, const Value& input, const Arguments&) {
  return soft_text(interpreter, input);
}

Value sum(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("sum", arguments, {"attribute", "start"});
  const Getter get(interpreter, given[0]);
  Value total = given[1] == nullptr ? Value(std::int64_t{0}) : *given[1];
  for (const Value& item : interpreter.iterate(input)) {
    total = interpreter.calculate(Operator::add, total, get(item));
  }
  return total;
}

Value tojson(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("tojson", arguments,
                         {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonFormat json;
  json.ensure_ascii = given.truth(0, false);
  json.sort_keys = given.truth(3, false);
  if (given[1] != nullptr && !given[1]->is_none()) {
    json.indent =
        static_cast<int>(std::clamp(given.whole(1, 0), std::int64_t{0}, std::int64_t{64}));
    json.item_separator = ",";
  }
  if (given[2] != nullptr && !given[2]->is_none()) {
    const std::vector<Value> separators = interpreter.iterate(*given[2]);
    if (separators.size() != 2 || separators[0].text() == nullptr ||
        separators[1].text() == nullptr) {
      refuse("tojson(): separators are two strings");
    }
    json.item_separator = separators[0].text()->bytes;
    json.key_separator = separators[1].text()->bytes;
  }
  // Each value may begin a line and be followed by a separator.
  interpreter.spend_text(static_cast<std::size_t>(input.weight()) *
                         (1 + static_cast<std::size_t>(std::max(json.indent, 0)) +
                          (json.item_separator.size() + json.key_separator.size()) / 8));
  return to_json(input, json);
}

Value trim(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("trim", arguments, {"chars"});
  const bool all_space = given[0] == nullptr || given[0]->is_none();
  const Text text = soft_text(interpreter, input);
  Text stripped = strip(text, all_space ? std::string() : given.text(0, "").bytes, Ends::both);
  interpreter.spend_steps(std::ssize(text.bytes) - std::ssize(stripped.bytes));
  return stripped;
}

Value truncate(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("truncate", arguments, {"length", "killwords", "end", "leeway"});
  if (input.text() == nullptr) refuse("truncate() takes a string");
  const Text text = soft_text(interpreter, input);
  const Text end = given.text(2, "...");
  const std::int64_t most = given.whole(0, 255);
  const auto end_size = static_cast<std::int64_t>(length(end.bytes));
  const bool no_leeway = given[3] == nullptr || given[3]->is_none();
  if (most < end_size) refuse("expected length >= ", std::to_string(end_size));
  if (static_cast<std::int64_t>(length(text.bytes)) - most <= (no_leeway ? 5 : given.whole(3, 5))) {
    return text;
  }
  Text cut = sliced(text, 0, most - end_size, 1);
  if (!given.truth(1, false)) cut = split_right(cut, " ", 1).front();
  return interpreter.calculate(Operator::add, cut, end);
}

Value unique(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Parameters given("unique", arguments, {"case_sensitive", "attribute"});
  const std::vector<Value> all = interpreter.iterate(input);
  const auto keys = keys_of(interpreter, all, Getter(interpreter, given[1]), given.truth(0, false));
  std::vector<Value> out;
  std::vector<Value> seen;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_seen = std::ranges::any_of(seen, [&](const Value& other) {
      interpreter.spend_steps(1);
      return interpreter.same(other, keys[i]);
    });
    if (is_seen) continue;
    seen.push_back(keys[i]);
    out.push_back(all[i]);
  }
  return make_list(std::move(out), List::Kind::generator);
}

Value upper_case(Interpreter& interpreter, const Value& input, const Arguments&) {
  return filter_of_text(interpreter, input, upper);
}
Value lower_case(Interpreter& interpreter, const Value& input, const Arguments&) {
  return filter_of_text(interpreter, input, lower);
}
Value capital(Interpreter& interpreter, const Value& input, const Arguments&) {
  return filter_of_text(interpreter, input, capitalize);
}

/// Jinja's own: a word also begins behind brackets, and the rest of each is in lower case.
Value title_case(Interpreter& interpreter, const Value& input, const Arguments&) {
  const Text text = soft_text(interpreter, input);
  interpreter.spend_steps(2 * std::ssize(text.bytes));
  std::string out;
  std::size_t word = 0;
  const auto write_word = [&](std::size_t end) {
    const std::string_view bytes = std::string_view(text.bytes).substr(word, end - word);
    if (bytes.empty()) return;
    const std::size_t size = first_size(bytes);
    out += upper(bytes.substr(0, size)) + lower(bytes.substr(size));
  };
  for (std::size_t at = 0; at < text.bytes.size();) {
    const std::size_t size = first_size(std::string_view(text.bytes).substr(at));
    const std::string character = text.bytes.substr(at, size);
    if (is_space(character) || std::string_view("-({[<").find(character) != std::string::npos) {
      write_word(at);
      out += character;
      word = at + size;
    }
    at += size;
  }
  write_word(text.bytes.size());
  return text.with(std::move(out));
}

struct NamedFilter {
  std::string_view name;
  FilterFunction filter;
};
constexpr NamedFilter all_filters[]{
    {"abs", absolute},
    {"attr", attr},
    {"batch", batch},
    {"capitalize", capital},
    {"center", center},
    {"count", length_of},
    {"d", with_default},
    {"default", with_default},
    {"dictsort", dictsort},
    {"e", escape},
    {"escape", escape},
    {"first", first},
    {"float", to_real},
    {"forceescape", force_escape},
    {"format", format},
    {"groupby", groupby},
    {"indent", indent},
    {"int", to_whole},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length_of},
    {"list", as_list},
    {"lower", lower_case},
    {"map", map},
    {"max", max},
    {"min", min},
    {"reject", reject},
    {"rejectattr", reject_attr},
    {"replace", replace_text},
    {"reverse", reverse},
    {"round", round},
    {"safe", safe},
    {"select", select},
    {"selectattr", select_attr},
    {"slice", slice},
    {"sort", sort},
    {"string", string},
    {"sum", sum},
    {"title", title_case},
    {"tojson", tojson},
    {"trim", trim},
    {"truncate", truncate},
    {"unique", unique},
    {"upper", upper_case},
};

}  // namespace

FilterFunction find_filter(std::string_view name) {
  const auto* const filter = std::ranges::find(all_filters, name, &NamedFilter::name);
  return filter == std::end(all_filters) ? nullptr : filter->filter;
}

}  // namespace dstrain::jinja
