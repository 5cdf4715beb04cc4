#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

/// The values of a Jinja template, with the meaning that they have in Python.
namespace dstrain::jinja {

/// Bytes [begin, end) of a text that come from an input of the template; they may be empty.
struct Origin {
  std::size_t begin = 0;
  std::size_t end = 0;
  int source = 0;  ///< the number that the caller gave to the input, or `generated`
  bool operator==(const Origin&) const = default;
};

/// The source of what a template writes within {% generation %}.
inline constexpr int generated = -1;

/// A UTF-8 text that knows where its parts come from. Operations that keep a part keep its origins;
/// an operation that changes the characters of a text (upper case, JSON) makes all of it come from
/// the first source.
struct Text {
  std::string bytes{};
  std::vector<Origin> origins{};  ///< in any order; they may overlap
  bool markup = false;            ///< of the filter `safe`: other texts that are added are escaped

  void append(const Text& other);
  void append(std::string_view other) { bytes += other; }
  /// Returns bytes [begin, end).
  [[nodiscard]] Text part(std::size_t begin, std::size_t end) const;
  /// Returns a text made from all of this one.
  [[nodiscard]] Text with(std::string changed) const;
  /// Returns the part from the first text of `source` to the last one; none: there is none. Empty
  /// texts count if there are no others.
  [[nodiscard]] std::optional<Origin> extent(int source) const;
  /// Records that all of the text comes from `source`.
  void mark(int source) { origins.push_back({0, bytes.size(), source}); }
};

class Interpreter;
struct List;
struct Dict;
struct Namespace;
struct Callable;
struct Loop;

struct None {
  bool operator==(const None&) const = default;
};

/// A value that is not there. Most uses of it fail with the reason.
struct Undefined {
  std::shared_ptr<const std::string> reason{};
};

/// A copy shares lists, dictionaries and texts with the original; only namespaces change.
class Value {
 public:
  using Form = std::variant<Undefined,
                            None,
                            bool,
                            std::int64_t,
                            double,
                            std::shared_ptr<const Text>,
                            std::shared_ptr<List>,
                            std::shared_ptr<Dict>,
                            std::shared_ptr<Namespace>,
                            std::shared_ptr<const Callable>,
                            std::shared_ptr<Loop>>;

  Value() = default;
  Value(None none) : form_(none) {}            // NOLINT(google-explicit-constructor)
  Value(bool truth) : form_(truth) {}          // NOLINT(google-explicit-constructor)
  Value(std::int64_t whole) : form_(whole) {}  // NOLINT(google-explicit-constructor)
  Value(double number) : form_(number) {}      // NOLINT(google-explicit-constructor)
  Value(Text text)                             // NOLINT(google-explicit-constructor)
      : form_(std::make_shared<const Text>(std::move(text))) {}
  Value(std::string text) : Value(Text{std::move(text)}) {}  // NOLINT(google-explicit-constructor)
  Value(const char*) = delete;                               // would become a bool
  /// Throws TemplateError if they are nested deeply, so that recursion over values is bounded.
  Value(Dict dict);          // NOLINT(google-explicit-constructor)
  Value(List list);          // NOLINT(google-explicit-constructor)
  Value(Namespace space);    // NOLINT(google-explicit-constructor)
  Value(Callable callable);  // NOLINT(google-explicit-constructor)
  Value(std::shared_ptr<Loop> loop) : form_(std::move(loop)) {}  // NOLINT
  static Value undefined(std::string reason);

  [[nodiscard]] const Form& form() const { return form_; }
  [[nodiscard]] bool is_undefined() const { return std::holds_alternative<Undefined>(form_); }
  [[nodiscard]] bool is_none() const { return std::holds_alternative<None>(form_); }
  [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&form_); }
  /// Null if it has another type.
  [[nodiscard]] const std::int64_t* whole() const { return std::get_if<std::int64_t>(&form_); }
  [[nodiscard]] const double* real() const { return std::get_if<double>(&form_); }
  [[nodiscard]] const Text* text() const { return pointer<const Text>(); }
  [[nodiscard]] List* list() const { return pointer<List>(); }
  /// A list or tuple; null: it is something else, such as a generator.
  [[nodiscard]] const List* sequence() const;
  [[nodiscard]] Dict* dict() const { return pointer<Dict>(); }
  [[nodiscard]] Namespace* name_space() const { return pointer<Namespace>(); }
  [[nodiscard]] const Callable* callable() const { return pointer<const Callable>(); }
  [[nodiscard]] Loop* loop() const { return pointer<Loop>(); }
  /// The value of an int or bool; null: it is neither.
  [[nodiscard]] bool as_whole(std::int64_t& whole) const;
  /// The same for floats too.
  [[nodiscard]] bool as_real(double& real) const;

  /// How deeply lists and dictionaries are nested in it; 0: it is neither.
  [[nodiscard]] int depth() const;
  /// The work of going through all that it holds, about the bytes of its text. Lists that hold one
  /// value many times are heavy though they are small.
  [[nodiscard]] std::int64_t weight() const;
  /// Python's bool(value).
  [[nodiscard]] bool truth() const;
  /// Python's name of the type, such as "str" and "NoneType".
  [[nodiscard]] std::string type_name() const;

 private:
  template <class T>
  [[nodiscard]] T* pointer() const {
    const auto* const held = std::get_if<std::shared_ptr<T>>(&form_);
    return held == nullptr ? nullptr : held->get();
  }
  Form form_;
};

struct List {
  /// A generator yields its items once. A view is that of a dictionary's keys, values or items.
  enum class Kind { list, tuple, generator, view };
  std::vector<Value> items{};
  Kind kind = Kind::list;
  bool consumed = false;    ///< of a generator: it yields nothing more
  bool is_group = false;    ///< a tuple of groupby, whose items are also named grouper and list
  int depth = 1;            ///< of lists and dictionaries in each other; set by Value
  std::int64_t weight = 1;  ///< see Value::weight(); set by Value
};

/// Keeps the order of its entries.
struct Dict {
  std::vector<std::pair<Value, Value>> entries{};
  std::optional<int> source{};  ///< of an empty one, which has no texts: that of its JSON
  int depth = 1;                ///< as for List
  std::int64_t weight = 1;
  [[nodiscard]] const Value* find(const Value& key) const;
  [[nodiscard]] const Value* at(std::string_view key) const;
  void set(Value key, Value value);
};

/// The only value that a template can change.
struct Namespace {
  Dict attributes{};
};

struct Arguments {
  std::vector<Value> positional{};
  std::vector<std::pair<std::string, Value>> named{};
};

struct Callable {
  std::string name;
  std::function<Value(Interpreter&, Arguments&)> call;
};

/// The variable `loop` of a for statement.
struct Loop {
  std::shared_ptr<const std::vector<Value>> items{};
  std::size_t index = 0;
  std::size_t depth = 0;
  std::vector<Value> changed{};  ///< the last arguments of loop.changed()
  /// Renders the loop's body for other items; empty: the loop is not recursive.
  std::function<Value(const Value& items)> recursion{};
};

Value make_list(std::vector<Value> items, List::Kind kind = List::Kind::list);

/// Python's == .
bool equal(const Value& a, const Value& b);

/// The operators of expressions, by their symbols.
enum class Operator {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};
inline constexpr std::array<std::string_view, 15> operator_symbols{
    "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
constexpr std::string_view symbol_of(Operator operation) {
  return operator_symbols.at(static_cast<std::size_t>(operation));
}

/// Python's `a < b`, as a negative, zero or positive number for less, equal and greater; NaN is
/// greater. Throws TemplateError for types without an order.
int compare(const Value& a, const Value& b, Operator operation);

/// Python's str(value), as {{ value }} writes it, and repr(value).
Text to_text(const Value& value);
std::string to_repr(const Value& value);

/// Options of Python's json.dumps, as transformers gives them to the filter tojson.
struct JsonFormat {
  bool ensure_ascii = false;
  int indent = -1;  ///< spaces; -1: on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
Text to_json(const Value& value, const JsonFormat& format);

/// Python's repr of a float: the shortest digits that give the same number.
std::string float_text(double number);

/// Thrown within the interpreter; Template turns it into a Failure.
struct TemplateError {
  std::string message;
  bool raised = false;  ///< by the template's own raise_exception
};

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  std::string message;
  ((message += parts), ...);
  throw TemplateError{std::move(message)};
}

}  // namespace dstrain::jinja
