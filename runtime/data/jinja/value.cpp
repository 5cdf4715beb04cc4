#include "runtime/data/jinja/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "runtime/base/utf8.h"
#include "runtime/data/jinja/python_text.h"

namespace dstrain::jinja {
namespace {

constexpr int nesting_max = 200;

/// Counts a value that a list or dictionary holds.
template <class Holder>
void count(Holder& holder, const Value& held) {
  constexpr std::int64_t weight_max = std::int64_t{1} << 60;
  holder.depth = std::max(holder.depth, held.depth() + 1);
  holder.weight = std::min(holder.weight + held.weight(), weight_max);
  if (holder.depth > nesting_max) {
    refuse("lists are nested deeper than ", std::to_string(nesting_max));
  }
}

bool equal_lists(const List& a, const List& b) {
  const bool same_type = (a.kind == List::Kind::tuple) == (b.kind == List::Kind::tuple);
  return same_type && std::ranges::equal(a.items, b.items, equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::ranges::all_of(a.entries, [&](const auto& entry) {
    const Value* const other = b.find(entry.first);
    return other != nullptr && equal(entry.second, *other);
  });
}

int sign_of(bool less, bool greater) {
  return less ? -1 : int{greater};
}

/// Python chooses the quotes that need no escape.
std::string quoted(std::string_view text) {
  const bool single = text.find('\'') == std::string_view::npos;
  const char quote = single || text.find('"') != std::string_view::npos ? '\'' : '"';
  std::string out(1, quote);
  while (!text.empty()) {
    const auto [code, size] = first_of_any(text);
    if (code == U'\n' || code == U'\r' || code == U'\t') {
      out += code == U'\n' ? "\\n" : code == U'\r' ? "\\r" : "\\t";
    } else if (code == static_cast<char32_t>(quote) || code == U'\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (is_printable(code)) {
      out += text.substr(0, size);
    } else {
      const auto number = static_cast<std::uint32_t>(code);
      out += code < 0x100     ? fmt::format("\\x{:02x}", number)
             : code < 0x10000 ? fmt::format("\\u{:04x}", number)
                              : fmt::format("\\U{:08x}", number);
    }
    text.remove_prefix(size);
  }
  return out + quote;
}

std::string with_commas_between(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string dict_repr(const Dict& dict) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : dict.entries) {
    parts.push_back(to_repr(key) + ": " + to_repr(value));
  }
  return fmt::format("{{{}}}", with_commas_between(parts));
}

std::string list_repr(const List& list) {
  if (list.kind == List::Kind::generator || list.kind == List::Kind::view) {
    refuse("a generator has no text; use the filter list");
  }
  std::vector<std::string> parts;
  for (const Value& item : list.items) parts.push_back(to_repr(item));
  const std::string between = with_commas_between(parts);
  if (list.kind == List::Kind::list) return fmt::format("[{}]", between);
  return parts.size() == 1 ? fmt::format("({},)", between) : fmt::format("({})", between);
}

/// Writes JSON as Python's json.dumps does.
class JsonWriter {
 public:
  explicit JsonWriter(const JsonFormat& format) : format_(format) {}

  void write(const Value& value) {
    if (const Text* const text = value.text()) {
      text_.origins.insert(text_.origins.end(), text->origins.begin(), text->origins.end());
      write_string(text->bytes);
    } else if (const List* const list = value.list()) {
      if (value.sequence() == nullptr) not_serializable(value);
      write_all('[', ']', list->items, [&](const Value& item) { write(item); });
    } else if (const Dict* const dict = value.dict()) {
      write_dict(*dict);
    } else {
      text_.bytes += scalar(value);
    }
  }

  /// The text; all of it comes from the first source of its parts.
  Text take() { return text_.with(text_.bytes); }

 private:
  [[noreturn]] static void not_serializable(const Value& value) {
    refuse("Object of type ", value.type_name(), " is not JSON serializable");
  }

  static std::string scalar(const Value& value) {
    if (value.is_none()) return "null";
    if (const bool* const truth = value.boolean()) return *truth ? "true" : "false";
    if (const std::int64_t* const whole = value.whole()) return std::to_string(*whole);
    const double* const real = value.real();
    if (real == nullptr) not_serializable(value);
    if (std::isnan(*real)) return "NaN";
    if (std::isinf(*real)) return *real > 0 ? "Infinity" : "-Infinity";
    return float_text(*real);
  }

  void write_dict(const Dict& dict) {
    if (dict.source) text_.origins.push_back({0, 0, *dict.source});
    std::vector<std::pair<Value, Value>> entries = dict.entries;
    if (format_.sort_keys) {
      std::ranges::stable_sort(entries, [](const auto& a, const auto& b) {
        return compare(a.first, b.first, Operator::less) < 0;
      });
    }
    write_all('{', '}', entries, [&](const auto& entry) {
      write_string(entry.first.text() != nullptr ? entry.first.text()->bytes : scalar(entry.first));
      text_.bytes += format_.key_separator;
      write(entry.second);
    });
  }

  template <class Items, class Write>
  void write_all(char begin, char end, const Items& items, const Write& write_one) {
    text_.bytes += begin;
    ++level_;
    bool first = true;
    for (const auto& item : items) {
      if (!first) text_.bytes += format_.item_separator;
      first = false;
      new_line();
      write_one(item);
    }
    --level_;
    if (!first) new_line();
    text_.bytes += end;
  }

  void new_line() {
    if (format_.indent < 0) return;
    text_.bytes += '\n';
    text_.bytes.append(static_cast<std::size_t>(format_.indent) * level_, ' ');
  }

  void write_string(std::string_view bytes) {
    text_.bytes += '"';
    while (!bytes.empty()) {
      const auto [code, size] = first_of_any(bytes);
      write_character(code, bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
    text_.bytes += '"';
  }

  void write_character(char32_t code, std::string_view character) {
    static constexpr std::string_view escaped = "\"\\\n\r\t\b\f";
    static constexpr std::string_view letters = "\"\\nrtbf";
    const auto number = static_cast<std::uint32_t>(code);
    if (const auto at =
            code < 0x80 ? escaped.find(static_cast<char>(code)) : std::string_view::npos;
        at != std::string_view::npos) {
      text_.bytes += '\\';
      text_.bytes += letters[at];
    } else if (code < 0x20 || (format_.ensure_ascii && code >= 0x7f && code < 0x10000)) {
      text_.bytes += fmt::format("\\u{:04x}", number);
    } else if (format_.ensure_ascii && code >= 0x10000) {
      text_.bytes += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((number - 0x10000) >> 10),
                                 0xdc00 + ((number - 0x10000) & 0x3ff));
    } else {
      text_.bytes += character;
    }
  }

  const JsonFormat& format_;
  Text text_;
  std::size_t level_ = 0;
};

}  // namespace

void Text::append(const Text& other) {
  for (const Origin& origin : other.origins) {
    origins.push_back({origin.begin + bytes.size(), origin.end + bytes.size(), origin.source});
  }
  bytes += other.bytes;
}

Text Text::part(std::size_t begin, std::size_t end) const {
  Text cut{bytes.substr(begin, end - begin), {}, markup};
  for (const Origin& origin : origins) {
    const Origin inside{std::clamp(origin.begin, begin, end) - begin,
                        std::clamp(origin.end, begin, end) - begin, origin.source};
    const bool touches = origin.begin <= end && origin.end >= begin;
    if (inside.begin < inside.end || touches) cut.origins.push_back(inside);
  }
  return cut;
}

std::optional<Origin> Text::extent(int source) const {
  std::optional<Origin> all;
  for (const Origin& origin : origins) {
    if (origin.source != source) continue;
    const bool empty = origin.begin == origin.end;
    const bool all_empty = !all || all->begin == all->end;
    if (empty && !all_empty) continue;
    if (!all || (all_empty && !empty)) {
      all = origin;
    } else {
      all = Origin{std::min(all->begin, origin.begin), std::max(all->end, origin.end), source};
    }
  }
  return all;
}

Text Text::with(std::string changed) const {
  Text made{std::move(changed), {}, markup};
  if (!origins.empty()) made.mark(origins.front().source);
  return made;
}

const Value* Dict::find(const Value& key) const {
  for (const auto& [name, value] : entries) {
    if (equal(name, key)) return &value;
  }
  return nullptr;
}

const Value* Dict::at(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name.text() != nullptr && name.text()->bytes == key) return &value;
  }
  return nullptr;
}

void Dict::set(Value key, Value value) {
  for (auto& [name, held] : entries) {
    if (equal(name, key)) {
      held = std::move(value);
      return;
    }
  }
  entries.emplace_back(std::move(key), std::move(value));
}

Value::Value(Dict dict) {
  for (const auto& [key, value] : dict.entries) {
    count(dict, key);
    count(dict, value);
  }
  form_ = std::make_shared<Dict>(std::move(dict));
}

Value::Value(List list) {
  for (const Value& item : list.items) count(list, item);
  form_ = std::make_shared<List>(std::move(list));
}

Value::Value(Namespace space) : form_(std::make_shared<Namespace>(std::move(space))) {}

Value::Value(Callable callable) : form_(std::make_shared<const Callable>(std::move(callable))) {}

Value Value::undefined(std::string reason) {
  Value value;
  value.form_ = Undefined{std::make_shared<const std::string>(std::move(reason))};
  return value;
}

bool Value::as_whole(std::int64_t& value) const {
  if (const bool* const truth = boolean()) {
    value = *truth ? 1 : 0;
  } else if (const std::int64_t* const number = whole()) {
    value = *number;
  } else {
    return false;
  }
  return true;
}

bool Value::as_real(double& value) const {
  std::int64_t number = 0;
  if (as_whole(number)) {
    value = static_cast<double>(number);
  } else if (real() != nullptr) {
    value = *real();
  } else {
    return false;
  }
  return true;
}

const List* Value::sequence() const {
  const List* const held = list();
  const bool is_sequence =
      held != nullptr && (held->kind == List::Kind::list || held->kind == List::Kind::tuple);
  return is_sequence ? held : nullptr;
}

int Value::depth() const {
  if (const List* const held = list()) return held->depth;
  if (const Dict* const held = dict()) return held->depth;
  return 0;
}

std::int64_t Value::weight() const {
  if (const List* const held = list()) return held->weight;
  if (const Dict* const held = dict()) return held->weight;
  return text() == nullptr ? 8 : std::ssize(text()->bytes) + 8;
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (double number = 0; as_real(number)) return number != 0;
  if (const Text* const held = text()) return !held->bytes.empty();
  if (const List* const held = list()) {
    return held->kind == List::Kind::generator || !held->items.empty();
  }
  if (const Dict* const held = dict()) return !held->entries.empty();
  return true;
}

std::string Value::type_name() const {
  static constexpr std::array<std::string_view, std::variant_size_v<Form>> names{
      "Undefined", "NoneType", "bool",      "int",      "float",      "str",
      "list",      "dict",     "Namespace", "function", "LoopContext"};
  if (text() != nullptr && text()->markup) return "Markup";
  if (const List* const held = list()) {
    static constexpr std::array<std::string_view, 4> kinds{"list", "tuple", "generator",
                                                           "dict_view"};
    return std::string(kinds.at(static_cast<std::size_t>(held->kind)));
  }
  return std::string(names.at(form_.index()));
}

Value make_list(std::vector<Value> items, List::Kind kind) {
  return List{std::move(items), kind};
}

bool equal(const Value& a, const Value& b) {
  if (a.text() != nullptr && b.text() != nullptr) return a.text()->bytes == b.text()->bytes;
  std::int64_t whole_a = 0;
  std::int64_t whole_b = 0;
  if (a.as_whole(whole_a) && b.as_whole(whole_b)) return whole_a == whole_b;
  double real_a = 0;
  double real_b = 0;
  if (a.as_real(real_a) && b.as_real(real_b)) return real_a == real_b;
  if (a.list() != nullptr && b.list() != nullptr) return equal_lists(*a.list(), *b.list());
  if (a.dict() != nullptr && b.dict() != nullptr) return equal_dicts(*a.dict(), *b.dict());
  if (a.form().index() != b.form().index()) return false;
  if (a.is_none() || a.is_undefined()) return true;
  return (a.name_space() != nullptr && a.name_space() == b.name_space()) ||
         (a.callable() != nullptr && a.callable() == b.callable());
}

int compare(const Value& a, const Value& b, Operator operation) {
  if (a.text() != nullptr && b.text() != nullptr) {
    // The order of UTF-8 is that of code points.
    return a.text()->bytes.compare(b.text()->bytes);
  }
  std::int64_t whole_a = 0;
  std::int64_t whole_b = 0;
  if (a.as_whole(whole_a) && b.as_whole(whole_b)) {
    return sign_of(whole_a<whole_b, whole_a> whole_b);
  }
  double real_a = 0;
  double real_b = 0;
  if (a.as_real(real_a) && b.as_real(real_b)) return sign_of(real_a < real_b, real_a != real_b);
  if (a.list() != nullptr && b.list() != nullptr && a.type_name() == b.type_name()) {
    const auto& first = a.list()->items;
    const auto& second = b.list()->items;
    for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
      if (!equal(first[i], second[i])) return compare(first[i], second[i], operation);
    }
    return sign_of(first.size() < second.size(), first.size() > second.size());
  }
  for (const Value* value : {&a, &b}) {
    if (const auto* const missing = std::get_if<Undefined>(&value->form())) {
      refuse(*missing->reason);
    }
  }
  refuse("'", symbol_of(operation), "' not supported between instances of '", a.type_name(),
         "' and '", b.type_name(), "'");
}

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer{};
  const auto shortest = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                      std::chars_format::scientific);
  const std::string_view text(buffer.data(),
                              static_cast<std::size_t>(shortest.ptr - buffer.data()));
  const std::size_t e = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  if (exponent < -4 || exponent >= 16) return std::string(text);
  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::fixed);
  std::string out(buffer.data(), fixed.ptr);
  return out.find('.') == std::string::npos ? out + ".0" : out;
}

Text to_text(const Value& value) {
  if (const Text* const text = value.text()) {
    Text plain = *text;
    plain.markup = false;
    return plain;
  }
  if (value.is_undefined()) return {};
  return {to_repr(value)};
}

std::string to_repr(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "None";
  if (const bool* const truth = value.boolean()) return *truth ? "True" : "False";
  if (const std::int64_t* const whole = value.whole()) return std::to_string(*whole);
  if (const double* const real = value.real()) return float_text(*real);
  if (const Text* const text = value.text()) {
    return text->markup ? fmt::format("Markup({})", quoted(text->bytes)) : quoted(text->bytes);
  }
  if (const List* const list = value.list()) return list_repr(*list);
  if (const Dict* const dict = value.dict()) return dict_repr(*dict);
  refuse("a ", value.type_name(), " has no text");
}

Text to_json(const Value& value, const JsonFormat& format) {
  JsonWriter writer(format);
  writer.write(value);
  return writer.take();
}

}  // namespace dstrain::jinja
