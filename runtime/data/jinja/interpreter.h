#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/data/jinja/syntax.h"
#include "runtime/data/jinja/value.h"

namespace dstrain::jinja {

/// What a template may use, so that none runs long or fills the memory.
struct Limits {
  std::int64_t steps = 10'000'000;                    ///< of some 50 ns
  std::int64_t text_bytes = std::int64_t{256} << 20;  ///< of all texts that it makes
};

/// Renders one template once. The functions of filters, tests and methods use it to call back and
/// to account for their work.
class Interpreter {
 public:
  Interpreter(const ParsedTemplate& parsed, const Limits& limits)
      : parsed_(parsed), left_(limits) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;
  ~Interpreter();

  /// Throws TemplateError; position() then says where.
  Text run(const std::vector<std::pair<std::string, Value>>& variables);
  [[nodiscard]] Position position() const { return at_; }

  Value call(const Value& callee, Arguments& arguments);
  /// Python's obj.name and obj[index], as Jinja looks them up: methods, attributes, items.
  Value attribute(const Value& object, const std::string& name);
  Value item(const Value& object, const Value& index);
  /// The values that a loop over `value` yields; consumes a generator.
  std::vector<Value> iterate(const Value& value);
  /// Whether `container` contains a value: Python's `in`.
  bool contains(const Value& container, const Value& value);
  bool same(const Value& a, const Value& b);
  Text text_of(const Value& value);
  /// Python's operators: those that calculate, and those that compare.
  Value calculate(Operator operation, const Value& left, const Value& right);
  bool holds(Operator operation, const Value& left, const Value& right);
  Value filtered(const Value& input, const std::string& name, const Arguments& arguments);
  bool tested(const Value& input, const std::string& name, const Arguments& arguments);

  Value make_namespace(Namespace space);

  /// Throw TemplateError once a limit is reached.
  void spend_steps(std::int64_t steps) {
    if ((left_.steps -= steps) < 0) refuse("the template runs too long");
  }
  void spend_text(std::size_t bytes) {
    if ((left_.text_bytes -= static_cast<std::int64_t>(bytes)) < 0) {
      refuse("the template makes too much text");
    }
  }

 private:
  struct Scope {
    Scope* parent = nullptr;
    std::vector<std::pair<Symbol, Value>> variables{};
    bool captured = false;  ///< by a macro or a recursive loop: it lives as long as the interpreter
  };
  class OpenScope;
  class Deeper;
  enum class Flow { next, break_loop, continue_loop };

  Scope& push_scope(Scope* parent);
  void pop_scope(Scope& scope);
  void capture_scope();
  void assign(Symbol symbol, Value value);
  void assign(const Target& target, Value value);
  [[nodiscard]] const Value* find(Symbol symbol);

  Value evaluate(const Expression& expression);
  Value evaluate(const Constant& constant) { return constant.value; }
  Value evaluate(const Name& name);
  Value evaluate(const ListLiteral& literal);
  Value evaluate(const DictLiteral& literal);
  Value evaluate(const Unary& unary);
  Value evaluate(const Binary& binary);
  Value evaluate(const Concatenation& concatenation);
  Value evaluate(const Logical& logical);
  Value evaluate(const Comparison& comparison);
  Value evaluate(const Conditional& conditional);
  Value evaluate(const Attribute& attribute);
  Value evaluate(const Item& item);
  Value evaluate(const Slice& slice);
  Value evaluate(const Call& call);
  Value evaluate(const Filter& filter);
  Value evaluate(const Test& test);
  Arguments evaluate(const CallArguments& arguments);
  Text added(const Text& left, const Text& right);
  Value repeated(const Value& value, std::int64_t times, const Value& factor);

  Flow execute(const Body& body);
  Flow execute(const TextOutput& output);
  Flow execute(const ValueOutput& output);
  Flow execute(const For& loop);
  Flow execute(const If& branches);
  Flow execute(const Set& set);
  Flow execute(const SetBlock& set);
  Flow execute(const Macro& macro);
  Flow execute(const CallBlock& block);
  Flow execute(const FilterBlock& block);
  Flow execute(const With& with);
  Flow execute(const Generation& generation);
  Flow execute(const Break&) { return Flow::break_loop; }
  Flow execute(const Continue&) { return Flow::continue_loop; }
  Flow run_loop(const For& loop, std::vector<Value> items, std::size_t depth);
  std::vector<Value> fitting(const For& loop, std::vector<Value> items);
  Value applied(const Filter& filter, const Value& input);
  Value apply(const std::vector<Expression>& chain, Value value);
  void write(const Value& value);

  /// The text that `write_it` writes.
  template <class Write>
  Text captured(const Write& write_it);
  Value make_macro(std::shared_ptr<const MacroForm> form);
  Value call_macro(const MacroForm& form, Scope* definition, Arguments& arguments);
  void bind(const MacroForm& form, Arguments& arguments);
  void bind_others(const MacroForm& form, Arguments& arguments);

  const ParsedTemplate& parsed_;
  Limits left_;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
  Scope* scope_ = nullptr;
  Text* output_ = nullptr;
  std::vector<Value> namespaces_;  ///< all of them, because they may hold each other
  Position at_;
  int depth_ = 0;
  Symbol loop_symbol_ = -1;
};

}  // namespace dstrain::jinja
