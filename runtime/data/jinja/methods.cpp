#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "runtime/data/jinja/interpreter.h"
#include "runtime/data/jinja/python_text.h"

/// The methods of Python's strings, dictionaries and lists that a sandboxed template may call, and
/// its global functions.
namespace dstrain::jinja {
namespace {

struct NamedMethod {
  std::string_view name;
  MethodFunction method;
};

/// For methods that change a value.
Value refuse_change(Interpreter&, const Value& self, const Arguments&) {
  refuse("a method that changes a '", self.type_name(), "' is unsafe");
}

Value list_of_texts(Interpreter& interpreter, const std::vector<Text>& texts) {
  interpreter.spend_steps(4 * std::ssize(texts));
  return make_list(std::vector<Value>(texts.begin(), texts.end()));
}

Value changed(Interpreter& interpreter,
              const Value& self,
              std::string (*change)(std::string_view)) {
  interpreter.spend_text(self.text()->bytes.size());
  interpreter.spend_steps(2 * std::ssize(self.text()->bytes));
  return self.text()->with(change(self.text()->bytes));
}

Value stripped(Interpreter& interpreter, const Value& self, const Arguments& arguments, Ends ends) {
  const Parameters given("strip", arguments, {"chars"});
  interpreter.spend_text(self.text()->bytes.size());
  const bool all_space = given[0] == nullptr || given[0]->is_none();
  const std::string characters = all_space ? std::string() : given.required_text(0).bytes;
  if (!all_space && characters.empty()) return self;
  Text text = strip(*self.text(), characters, ends);
  interpreter.spend_steps(std::ssize(self.text()->bytes) - std::ssize(text.bytes));
  return text;
}

Value split_text(Interpreter& interpreter,
                 const Value& self,
                 const Arguments& arguments,
                 bool from_right) {
  const Parameters given("split", arguments, {"sep", "maxsplit"});
  const std::int64_t most = given.whole(1, -1);
  interpreter.spend_text(self.text()->bytes.size());
  interpreter.spend_steps(std::ssize(self.text()->bytes) / 16);
  if (given[0] == nullptr || given[0]->is_none()) {
    return list_of_texts(interpreter, from_right ? split_words_right(*self.text(), most)
                                                 : split_words(*self.text(), most));
  }
  const std::string separator = given.required_text(0).bytes;
  if (separator.empty()) refuse("empty separator");
  return list_of_texts(interpreter, from_right ? split_right(*self.text(), separator, most)
                                               : split(*self.text(), separator, most));
}

/// The characters of a text that `start` and `end` of a method select, and the index of the first.
struct Selection {
  Text text;
  std::int64_t begin = 0;
  bool beyond = false;  ///< the start is behind the end of the text
};
Selection selection_of(Interpreter& interpreter, const Text& text, const Parameters& given) {
  if (given[1] == nullptr && given[2] == nullptr) return {text};
  interpreter.spend_steps(std::ssize(text.bytes) / 4);
  const auto size = static_cast<std::int64_t>(length(text.bytes));
  const auto index = [&](std::size_t parameter, std::int64_t other) {
    const bool is_given = given[parameter] != nullptr && !given[parameter]->is_none();
    const std::int64_t at = is_given ? given.whole(parameter, other) : other;
    return at < 0 ? std::max(at + size, std::int64_t{0}) : at;
  };
  const std::int64_t begin = index(1, 0);
  const std::int64_t end = std::min(index(2, size), size);
  const bool beyond = begin > size || begin > end;
  return {beyond ? Text{} : sliced(text, begin, end, 1), begin, beyond};
}

/// startswith and endswith, for a text or a tuple of texts.
Value has_end(Interpreter& interpreter,
              const Value& self,
              const Arguments& arguments,
              bool at_start) {
  const std::string function = at_start ? "startswith" : "endswith";
  const Parameters given(function, arguments, {"prefix", "start", "end"});
  interpreter.spend_text(self.text()->bytes.size());
  const Selection selected = selection_of(interpreter, *self.text(), given);
  const std::string_view text = selected.text.bytes;
  const auto has = [&](const Value& end) {
    if (end.text() == nullptr) {
      refuse(function, " first arg must be str or a tuple of str, not ", end.type_name());
    }
    if (selected.beyond) return false;
    return at_start ? text.starts_with(end.text()->bytes) : text.ends_with(end.text()->bytes);
  };
  const List* const ends = given.required(0).list();
  if (ends == nullptr || ends->kind != List::Kind::tuple) return has(given.required(0));
  return std::ranges::any_of(ends->items, has);
}

/// find, rfind, index, rindex: the index of a character, or -1.
std::int64_t found_at(Interpreter& interpreter,
                      const Value& self,
                      const Arguments& arguments,
                      bool from_right) {
  const Parameters given("find", arguments, {"sub", "start", "end"});
  interpreter.spend_text(self.text()->bytes.size());
  const std::string sub = given.required_text(0).bytes;
  const Selection selected = selection_of(interpreter, *self.text(), given);
  const std::string& text = selected.text.bytes;
  const std::size_t at = from_right ? text.rfind(sub) : text.find(sub);
  if (selected.beyond || at == std::string::npos) return -1;
  return selected.begin + static_cast<std::int64_t>(length(std::string_view(text).substr(0, at)));
}

Value index_of(Interpreter& interpreter,
               const Value& self,
               const Arguments& arguments,
               bool from_right) {
  const std::int64_t at = found_at(interpreter, self, arguments, from_right);
  if (at < 0) refuse("substring not found");
  return at;
}

Value replaced(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters given("replace", arguments, {"old", "new", "count"});
  const Text old = given.required_text(0);
  Text fresh = given.required_text(1);
  if (self.text()->markup && !fresh.markup) fresh = fresh.with(escape_html(fresh.bytes));
  // The worst case: each character is replaced.
  interpreter.spend_text(self.text()->bytes.size() +
                         self.text()->bytes.size() / std::max<std::size_t>(old.bytes.size(), 1) *
                             fresh.bytes.size());
  return replace(*self.text(), old, fresh, given.whole(2, -1));
}

Value counted(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters given("count", arguments, {"sub", "start", "end"});
  const std::string sub = given.required_text(0).bytes;
  interpreter.spend_text(self.text()->bytes.size());
  interpreter.spend_steps(std::ssize(self.text()->bytes) / 4);
  const Selection selected = selection_of(interpreter, *self.text(), given);
  if (selected.beyond) return std::int64_t{0};
  if (sub.empty()) return static_cast<std::int64_t>(length(selected.text.bytes)) + 1;
  return std::int64_t{std::ssize(split(selected.text, sub, -1)) - 1};
}

Value joined(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters given("join", arguments, {"iterable"});
  Text out;
  out.markup = self.text()->markup;
  bool first = true;
  for (const Value& item : interpreter.iterate(given.required(0))) {
    const Text* const text = item.text();
    if (text == nullptr) {
      refuse("sequence item: expected str instance, ", item.type_name(), " found");
    }
    if (!first) out.append(*self.text());
    first = false;
    interpreter.spend_text(self.text()->bytes.size() + text->bytes.size());
    const bool escapes = out.markup && !text->markup;
    out.append(escapes ? text->with(escape_html(text->bytes)) : *text);
  }
  return out;
}

Value partitioned(Interpreter& interpreter,
                  const Value& self,
                  const Arguments& arguments,
                  bool from_right) {
  const Parameters given("partition", arguments, {"sep"});
  Text separator = given.required_text(0);
  separator.markup = self.text()->markup;
  if (separator.bytes.empty()) refuse("empty separator");
  interpreter.spend_text(self.text()->bytes.size());
  const auto parts = from_right ? split_right(*self.text(), separator.bytes, 1)
                                : split(*self.text(), separator.bytes, 1);
  if (parts.size() == 2) return make_list({parts[0], separator, parts[1]}, List::Kind::tuple);
  Text none;
  none.markup = self.text()->markup;
  return from_right ? make_list({none, none, parts[0]}, List::Kind::tuple)
                    : make_list({parts[0], none, none}, List::Kind::tuple);
}

Value without(const Value& self, const Arguments& arguments, bool at_start) {
  const Parameters given("removeprefix", arguments, {"prefix"});
  const std::string end = given.required_text(0).bytes;
  const Text& text = *self.text();
  if (at_start && text.bytes.starts_with(end)) return text.part(end.size(), text.bytes.size());
  if (!at_start && text.bytes.ends_with(end)) return text.part(0, text.bytes.size() - end.size());
  return self;
}

/// ljust, rjust, center, zfill.
Value padded(Interpreter& interpreter,
             const Value& self,
             const Arguments& arguments,
             std::string_view side) {
  const Parameters given(side, arguments, {"width", "fillchar"});
  const std::int64_t width = given.required(0).is_undefined() ? 0 : given.whole(0, 0);
  const Text fill = given.text(1, side == "zfill" ? "0" : " ");
  if (length(fill.bytes) != 1) refuse("The fill character must be exactly one character long");
  const auto size = static_cast<std::int64_t>(length(self.text()->bytes));
  const std::int64_t missing = width > size ? width - size : 0;
  interpreter.spend_text(self.text()->bytes.size() +
                         static_cast<std::size_t>(missing) * fill.bytes.size());
  // Python's rule for the odd character.
  const std::int64_t left = side == "ljust"    ? 0
                            : side == "center" ? missing / 2 + (missing & width & 1)
                                               : missing;
  const auto repeated_fill = [&](std::int64_t count) {
    const auto times = static_cast<std::size_t>(count);
    if (fill.bytes.size() == 1) return std::string(times, fill.bytes.front());
    std::string all;
    for (std::size_t i = 0; i < times; ++i) all += fill.bytes;
    return all;
  };
  Text out;
  out.markup = self.text()->markup;
  const bool has_sign = side == "zfill" && (self.text()->bytes.starts_with('-') ||
                                            self.text()->bytes.starts_with('+'));
  if (has_sign) out.append(self.text()->part(0, 1));
  out.append(repeated_fill(left));
  out.append(self.text()->part(has_sign ? 1 : 0, self.text()->bytes.size()));
  out.append(repeated_fill(missing - left));
  return out;
}

template <std::size_t size>
struct Kind {
  std::array<char, size> name{};
  constexpr Kind(const char (&text)[size]) {  // NOLINT(google-explicit-constructor)
    std::copy_n(text, size, name.begin());
  }
};

template <Kind kind>
Value consists_of_kind(Interpreter& interpreter, const Value& self, const Arguments&) {
  interpreter.spend_steps(4 * std::ssize(self.text()->bytes));
  return consists_of(self.text()->bytes, kind.name.data());
}

Value lines_of(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters given("splitlines", arguments, {"keepends"});
  interpreter.spend_text(self.text()->bytes.size());
  interpreter.spend_steps(std::ssize(self.text()->bytes) / 4);
  return list_of_texts(interpreter, split_lines(*self.text(), given.truth(0, false)));
}

template <std::string (*change)(std::string_view)>
Value with_change(Interpreter& interpreter, const Value& self, const Arguments&) {
  return changed(interpreter, self, change);
}

#define DSTRAIN_JINJA_METHOD(expression)                                            \
  []([[maybe_unused]] Interpreter& interpreter, [[maybe_unused]] const Value& self, \
     [[maybe_unused]] const Arguments& arguments) -> Value {                        \
    return expression;                                                              \
  }

constexpr NamedMethod text_methods[]{
    {"capitalize", with_change<capitalize>},
    {"center", DSTRAIN_JINJA_METHOD(padded(interpreter, self, arguments, "center"))},
    {"count", counted},
    {"endswith", DSTRAIN_JINJA_METHOD(has_end(interpreter, self, arguments, false))},
    {"find", DSTRAIN_JINJA_METHOD(found_at(interpreter, self, arguments, false))},
    {"format", DSTRAIN_JINJA_METHOD(format_braces(interpreter, *self.text(), arguments))},
    {"index", DSTRAIN_JINJA_METHOD(index_of(interpreter, self, arguments, false))},
    {"isalnum", consists_of_kind<"alnum">},
    {"isalpha", consists_of_kind<"alpha">},
    {"isascii", consists_of_kind<"ascii">},
    {"isdecimal", consists_of_kind<"decimal">},
    {"isdigit", consists_of_kind<"digit">},
    {"islower", consists_of_kind<"lower">},
    {"isnumeric", consists_of_kind<"numeric">},
    {"isspace", consists_of_kind<"space">},
    {"istitle", consists_of_kind<"title">},
    {"isupper", consists_of_kind<"upper">},
    {"join", joined},
    {"ljust", DSTRAIN_JINJA_METHOD(padded(interpreter, self, arguments, "ljust"))},
    {"lower", with_change<lower>},
    {"lstrip", DSTRAIN_JINJA_METHOD(stripped(interpreter, self, arguments, Ends::left))},
    {"partition", DSTRAIN_JINJA_METHOD(partitioned(interpreter, self, arguments, false))},
    {"removeprefix", DSTRAIN_JINJA_METHOD(without(self, arguments, true))},
    {"removesuffix", DSTRAIN_JINJA_METHOD(without(self, arguments, false))},
    {"replace", replaced},
    {"rfind", DSTRAIN_JINJA_METHOD(found_at(interpreter, self, arguments, true))},
    {"rindex", DSTRAIN_JINJA_METHOD(index_of(interpreter, self, arguments, true))},
    {"rjust", DSTRAIN_JINJA_METHOD(padded(interpreter, self, arguments, "rjust"))},
    {"rpartition", DSTRAIN_JINJA_METHOD(partitioned(interpreter, self, arguments, true))},
    {"rsplit", DSTRAIN_JINJA_METHOD(split_text(interpreter, self, arguments, true))},
    {"rstrip", DSTRAIN_JINJA_METHOD(stripped(interpreter, self, arguments, Ends::right))},
    {"split", DSTRAIN_JINJA_METHOD(split_text(interpreter, self, arguments, false))},
    {"splitlines", lines_of},
    {"startswith", DSTRAIN_JINJA_METHOD(has_end(interpreter, self, arguments, true))},
    {"strip", DSTRAIN_JINJA_METHOD(stripped(interpreter, self, arguments, Ends::both))},
    {"title", with_change<title>},
    {"upper", with_change<upper>},
    {"zfill", DSTRAIN_JINJA_METHOD(padded(interpreter, self, arguments, "zfill"))},
};

// Dictionaries and lists.

template <class Pick>
Value entries_of(Interpreter& interpreter, const Value& self, const Pick& pick) {
  std::vector<Value> out;
  interpreter.spend_steps(std::ssize(self.dict()->entries));
  for (const auto& entry : self.dict()->entries) out.push_back(pick(entry));
  return make_list(std::move(out), List::Kind::view);
}

Value get(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters given("get", arguments, {"key", "default"});
  interpreter.spend_steps(std::ssize(self.dict()->entries) / 2);
  const Value* const found = self.dict()->find(given.required(0));
  if (found != nullptr) return *found;
  return given[1] == nullptr ? Value(None{}) : *given[1];
}

using Entry = std::pair<Value, Value>;
constexpr NamedMethod dict_methods[]{
    {"clear", refuse_change},
    {"copy", DSTRAIN_JINJA_METHOD(self)},
    {"get", get},
    {"items", DSTRAIN_JINJA_METHOD(
                  entries_of(interpreter,
                             self,
                             [](const Entry& entry) {
                               return make_list({entry.first, entry.second}, List::Kind::tuple);
                             }))},
    {"keys", DSTRAIN_JINJA_METHOD(
                 entries_of(interpreter, self, [](const Entry& entry) { return entry.first; }))},
    {"pop", refuse_change},
    {"popitem", refuse_change},
    {"setdefault", refuse_change},
    {"update", refuse_change},
    {"values", DSTRAIN_JINJA_METHOD(
                   entries_of(interpreter, self, [](const Entry& entry) { return entry.second; }))},
};

std::int64_t count_in(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters given("count", arguments, {"value"});
  const Value& value = given.required(0);
  return std::ranges::count_if(self.list()->items, [&](const Value& item) {
    interpreter.spend_steps(1);
    return interpreter.same(item, value);
  });
}

std::int64_t index_in(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters given("index", arguments, {"value"});
  const auto& items = self.list()->items;
  const auto at = std::ranges::find_if(items, [&](const Value& item) {
    interpreter.spend_steps(1);
    return interpreter.same(item, given.required(0));
  });
  if (at == items.end()) refuse("the value is not in the list");
  return at - items.begin();
}

constexpr NamedMethod list_methods[]{
    {"append", refuse_change},
    {"clear", refuse_change},
    {"copy", DSTRAIN_JINJA_METHOD(self)},
    {"count", DSTRAIN_JINJA_METHOD(count_in(interpreter, self, arguments))},
    {"extend", refuse_change},
    {"index", DSTRAIN_JINJA_METHOD(index_in(interpreter, self, arguments))},
    {"insert", refuse_change},
    {"pop", refuse_change},
    {"remove", refuse_change},
    {"reverse", refuse_change},
    {"sort", refuse_change},
};

Value cycled(Interpreter&, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) refuse("no items for cycling given");
  return arguments.positional[self.loop()->index % arguments.positional.size()];
}

Value has_changed(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Loop& loop = *self.loop();
  const bool same = loop.index > 0 && std::ranges::equal(loop.changed, arguments.positional,
                                                         [&](const Value& a, const Value& b) {
                                                           return interpreter.same(a, b);
                                                         });
  loop.changed = arguments.positional;
  return !same;
}

constexpr NamedMethod loop_methods[]{
    {"changed", has_changed},
    {"cycle", cycled},
};

#undef DSTRAIN_JINJA_METHOD

// Global functions.

Value range(Interpreter& interpreter, Arguments& arguments) {
  if (!arguments.named.empty()) refuse("range() takes no keyword arguments");
  const Parameters given("range", arguments, {"start", "stop", "step"});
  static_cast<void>(given.required(0));
  const bool has_stop = given[1] != nullptr;
  const std::int64_t start = has_stop ? given.whole(0, 0) : 0;
  const std::int64_t stop = given.whole(has_stop ? 1 : 0, 0);
  const std::int64_t step = given.whole(2, 1);
  constexpr std::int64_t most = 100'000;  // of Jinja's sandbox
  if (step == 0) refuse("range() arg 3 must not be zero");
  List list;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (std::ssize(list.items) == most) {
      refuse("Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
    }
    list.items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  interpreter.spend_steps(std::ssize(list.items));
  return list;
}

Dict dict_of(Interpreter& interpreter, Arguments& arguments) {
  Dict dict;
  if (arguments.positional.size() > 1) refuse("dict expected at most 1 argument");
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional.front();
    if (source.dict() != nullptr) {
      dict.entries = source.dict()->entries;
    } else if (source.name_space() != nullptr) {
      dict.entries = source.name_space()->attributes.entries;
    } else {
      for (const Value& pair : interpreter.iterate(source)) {
        std::vector<Value> parts = interpreter.iterate(pair);
        if (parts.size() != 2) refuse("dict() needs pairs of key and value");
        interpreter.spend_steps(std::ssize(dict.entries) / 2);
        dict.set(std::move(parts[0]), std::move(parts[1]));
      }
    }
  }
  for (auto& [name, value] : arguments.named) {
    interpreter.spend_steps(std::ssize(dict.entries) / 2);
    dict.set(Text{name}, std::move(value));
  }
  interpreter.spend_steps(std::ssize(dict.entries));
  return dict;
}

Value name_space(Interpreter& interpreter, Arguments& arguments) {
  Dict attributes = dict_of(interpreter, arguments);
  for (const auto& [key, value] : attributes.entries) {
    if (key.text() != nullptr && key.text()->bytes.starts_with('_')) {
      refuse("attributes cannot begin with '_'");
    }
  }
  return interpreter.make_namespace({std::move(attributes)});
}

Value raise_exception(Interpreter& interpreter, Arguments& arguments) {
  const Parameters given("raise_exception", arguments, {"message"});
  throw TemplateError{interpreter.text_of(given.required(0)).bytes, true};
}

/// joiner(", "): a function that returns nothing at its first call, and then the separator.
Value joiner(Interpreter& interpreter, Arguments& arguments) {
  const Parameters given("joiner", arguments, {"sep"});
  const Value used = interpreter.make_namespace({});
  return Callable{"joiner", [used, separator = given.text(0, ", ")](Interpreter&, Arguments&) {
                    Dict& state = used.name_space()->attributes;
                    const bool first = state.entries.empty();
                    state.set(Text{"used"}, true);
                    return Value(first ? Text{} : separator);
                  }};
}

}  // namespace

MethodFunction find_method(const Value& object, std::string_view name) {
  std::span<const NamedMethod> methods;
  if (object.text() != nullptr) {
    methods = text_methods;
  } else if (object.dict() != nullptr) {
    methods = dict_methods;
  } else if (object.sequence() != nullptr) {
    methods = list_methods;
  } else if (object.loop() != nullptr) {
    methods = loop_methods;
  }
  const auto found = std::ranges::find(methods, name, &NamedMethod::name);
  return found == methods.end() ? nullptr : found->method;
}

std::vector<std::pair<std::string, Value>> global_functions() {
  const auto function = [](const std::string& name, Value (*call)(Interpreter&, Arguments&)) {
    return std::pair(name, Value(Callable{name, call}));
  };
  return {
      function("range", range),
      function("dict", [](Interpreter& interpreter,
                          Arguments& arguments) { return Value(dict_of(interpreter, arguments)); }),
      function("namespace", name_space), function("raise_exception", raise_exception),
      function("joiner", joiner)};
}

}  // namespace dstrain::jinja
