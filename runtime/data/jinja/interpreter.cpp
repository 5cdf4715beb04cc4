#include "runtime/data/jinja/interpreter.h"

#include <algorithm>

#include "runtime/data/jinja/python_text.h"

namespace dstrain::jinja {
namespace {

constexpr int recursion_max = 2000;

/// Python's object name in Jinja's messages.
std::string object_name(const Value& object) {
  return object.is_none() ? "None" : object.type_name() + " object";
}

/// Python's slice.indices: where the slice of a sequence begins, ends and how it steps.
struct SliceRange {
  std::int64_t from;
  std::int64_t to;
  std::int64_t step;
};
SliceRange slice_range(const Value& from, const Value& to, const Value& step, std::int64_t size) {
  const auto index = [](const Value& value, std::int64_t other) {
    std::int64_t whole = 0;
    if (value.is_none()) return other;
    if (!value.as_whole(whole)) refuse("slice indices must be integers or None");
    return whole;
  };
  SliceRange range{0, 0, index(step, 1)};
  if (range.step == 0) refuse("slice step cannot be zero");
  range.step = std::clamp(range.step, -size - 1, size + 1);  // so that adding it cannot overflow
  const bool down = range.step < 0;
  const auto clamp = [&](std::int64_t at) {
    if (at < 0) at += size;
    return std::clamp(at, std::int64_t{down ? -1 : 0}, down ? size - 1 : size);
  };
  range.from = from.is_none() ? (down ? size - 1 : 0) : clamp(index(from, 0));
  range.to = to.is_none() ? (down ? -1 : size) : clamp(index(to, 0));
  return range;
}

}  // namespace

/// Makes a scope for the life of this object.
class Interpreter::OpenScope {
 public:
  OpenScope(Interpreter& interpreter, Scope* parent)
      : interpreter_(interpreter), outer_(interpreter.scope_) {
    interpreter_.scope_ = scope_ = &interpreter_.push_scope(parent);
  }
  OpenScope(const OpenScope&) = delete;
  OpenScope& operator=(const OpenScope&) = delete;
  ~OpenScope() {
    interpreter_.pop_scope(*scope_);
    interpreter_.scope_ = outer_;
  }

 private:
  Interpreter& interpreter_;
  Scope* outer_;
  Scope* scope_ = nullptr;
};

/// Bounds recursion.
class Interpreter::Deeper {
 public:
  explicit Deeper(Interpreter& interpreter) : interpreter_(interpreter) {
    interpreter_.spend_steps(1);
    if (++interpreter_.depth_ > recursion_max) {
      --interpreter_.depth_;
      refuse("the template calls itself too deeply");
    }
  }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  ~Deeper() { --interpreter_.depth_; }

 private:
  Interpreter& interpreter_;
};

Interpreter::~Interpreter() {
  // One by one, so that a chain of namespaces is not freed by recursion.
  for (const Value& space : namespaces_) space.name_space()->attributes.entries.clear();
}

Value Interpreter::make_namespace(Namespace space) {
  Value value(std::move(space));
  namespaces_.push_back(value);
  spend_steps(10);
  return value;
}

Text Interpreter::run(const std::vector<std::pair<std::string, Value>>& variables) {
  Scope& globals = push_scope(nullptr);
  scope_ = &globals;
  const auto symbol_of = [&](std::string_view name) {
    const auto at = std::ranges::find(parsed_.names, name);
    return at == parsed_.names.end() ? -1 : static_cast<Symbol>(at - parsed_.names.begin());
  };
  // Variables that the template does not name cannot be used.
  static const std::vector<std::pair<std::string, Value>> functions = global_functions();
  for (const auto* const names : {&functions, &variables}) {
    for (const auto& [name, value] : *names) {
      if (const Symbol symbol = symbol_of(name); symbol >= 0) assign(symbol, value);
    }
  }
  loop_symbol_ = symbol_of("loop");
  Text text;
  output_ = &text;
  const OpenScope root(*this, &globals);
  execute(parsed_.body);
  return text;
}

// Scopes.

Interpreter::Scope& Interpreter::push_scope(Scope* parent) {
  if (free_scopes_.empty()) {
    scopes_.push_back({parent});
    return scopes_.back();
  }
  Scope& scope = *free_scopes_.back();
  free_scopes_.pop_back();
  scope.parent = parent;
  return scope;
}

void Interpreter::pop_scope(Scope& scope) {
  if (scope.captured) return;
  scope.variables.clear();
  free_scopes_.push_back(&scope);
}

void Interpreter::capture_scope() {
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent) {
    scope->captured = true;
  }
}

const Value* Interpreter::find(Symbol symbol) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    spend_steps(std::ssize(scope->variables) / 16);
    for (const auto& [name, value] : scope->variables) {
      if (name == symbol) return &value;
    }
  }
  return nullptr;
}

void Interpreter::assign(Symbol symbol, Value value) {
  spend_steps(std::ssize(scope_->variables) / 16);
  for (auto& [name, held] : scope_->variables) {
    if (name == symbol) {
      held = std::move(value);
      return;
    }
  }
  scope_->variables.emplace_back(symbol, std::move(value));
}

void Interpreter::assign(const Target& target, Value value) {
  if (!target.attribute.empty()) {
    const Value* const space = find(target.name);
    if (space == nullptr || space->name_space() == nullptr) {
      refuse("cannot assign attribute on non-namespace object");
    }
    if (target.attribute.starts_with('_')) refuse("attributes cannot begin with '_'");
    spend_steps(std::ssize(space->name_space()->attributes.entries) / 2);
    space->name_space()->attributes.set(std::string(target.attribute), std::move(value));
  } else if (target.parts.empty()) {
    assign(target.name, std::move(value));
  } else {
    std::vector<Value> items = iterate(value);
    if (items.size() != target.parts.size()) {
      refuse("expected ", std::to_string(target.parts.size()), " values to unpack, got ",
             std::to_string(items.size()));
    }
    for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], std::move(items[i]));
  }
}

// Expressions.

Value Interpreter::evaluate(const Expression& expression) {
  const Deeper deeper(*this);
  const Position outer = at_;
  at_ = expression.at;
  Value value = std::visit([this](const auto& form) { return evaluate(form); }, expression.form);
  at_ = outer;
  return value;
}

Value Interpreter::evaluate(const Name& name) {
  if (const Value* const value = find(name.symbol)) return *value;
  return Value::undefined("'" + parsed_.names[static_cast<std::size_t>(name.symbol)] +
                          "' is undefined");
}

Value Interpreter::evaluate(const ListLiteral& literal) {
  List list{{}, literal.kind};
  for (const Expression& item : literal.items) list.items.push_back(evaluate(item));
  return list;
}

Value Interpreter::evaluate(const DictLiteral& literal) {
  Dict dict;
  for (const auto& [key, value] : literal.entries) {
    spend_steps(std::ssize(dict.entries));
    Value name = evaluate(key);
    dict.set(std::move(name), evaluate(value));
  }
  return dict;
}

Value Interpreter::evaluate(const Unary& unary) {
  const Value operand = evaluate(*unary.operand);
  if (unary.operation == Unary::Operator::logical_not) return !operand.truth();
  if (operand.text() != nullptr || operand.list() != nullptr) {
    refuse("bad operand type for a sign: '", operand.type_name(), "'");
  }
  const std::int64_t sign = unary.operation == Unary::Operator::negative ? -1 : 1;
  return calculate(Operator::multiply, operand, sign);
}

Value Interpreter::evaluate(const Binary& binary) {
  const Value left = evaluate(*binary.left);
  return calculate(binary.operation, left, evaluate(*binary.right));
}

Value Interpreter::evaluate(const Concatenation& concatenation) {
  Text text;
  for (const Expression& part : concatenation.parts) {
    text.append(text_of(evaluate(part)));
  }
  return text;
}

Value Interpreter::evaluate(const Logical& logical) {
  Value left = evaluate(*logical.left);
  return left.truth() == logical.is_and ? evaluate(*logical.right) : left;
}

Text Interpreter::text_of(const Value& value) {
  // The text of a list is a few times longer than its parts.
  spend_text(static_cast<std::size_t>(value.weight()));
  Text text = to_text(value);
  spend_text(text.bytes.size());
  return text;
}

Value Interpreter::evaluate(const Comparison& comparison) {
  Value left = evaluate(*comparison.first);
  for (const auto& [operation, expression] : comparison.rest) {
    Value right = evaluate(expression);
    if (!holds(operation, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Interpreter::evaluate(const Conditional& conditional) {
  if (evaluate(*conditional.condition).truth()) return evaluate(*conditional.yes);
  if (conditional.no != nullptr) return evaluate(*conditional.no);
  return Value::undefined(
      "the inline if-expression evaluated to false and no else section was defined.");
}

Value Interpreter::evaluate(const Attribute& expression) {
  return attribute(evaluate(*expression.object), expression.name);
}

Value Interpreter::evaluate(const Item& expression) {
  const Value object = evaluate(*expression.object);
  return item(object, evaluate(*expression.index));
}

Value Interpreter::evaluate(const Slice& slice) {
  const Value object = evaluate(*slice.object);
  const auto part = [&](const ExpressionPtr& expression) {
    return expression == nullptr ? Value(None{}) : evaluate(*expression);
  };
  const Value from = part(slice.from);
  const Value to = part(slice.to);
  const Value step = part(slice.step);
  if (const Text* const text = object.text()) {
    const auto range = slice_range(from, to, step, static_cast<std::int64_t>(length(text->bytes)));
    spend_text(text->bytes.size());
    spend_steps(std::ssize(text->bytes) / (range.step == 1 ? 8 : 1));
    return sliced(*text, range.from, range.to, range.step);
  }
  const List* const list = object.sequence();
  if (list == nullptr) {
    if (const auto* const missing = std::get_if<Undefined>(&object.form())) {
      refuse(*missing->reason);
    }
    refuse("'", object.type_name(), "' object is not subscriptable");
  }
  const auto range = slice_range(from, to, step, std::ssize(list->items));
  List made{{}, list->kind};
  for (std::int64_t i = range.from; range.step > 0 ? i < range.to : i > range.to; i += range.step) {
    spend_steps(1);
    made.items.push_back(list->items[static_cast<std::size_t>(i)]);
  }
  return made;
}

Value Interpreter::evaluate(const Call& expression) {
  if (const auto* const member = std::get_if<Attribute>(&expression.callee->form)) {
    const Value object = evaluate(*member->object);
    if (const MethodFunction method = find_method(object, member->name)) {
      return method(*this, object, evaluate(expression.arguments));
    }
    const Value callee = attribute(object, member->name);
    Arguments arguments = evaluate(expression.arguments);
    return call(callee, arguments);
  }
  const Value callee = evaluate(*expression.callee);
  Arguments arguments = evaluate(expression.arguments);
  return call(callee, arguments);
}

Value Interpreter::evaluate(const Filter& filter) {
  const Value input = evaluate(*filter.input);
  return applied(filter, input);
}

Value Interpreter::evaluate(const Test& test) {
  const Value input = evaluate(*test.input);
  if (test.function == nullptr) refuse("no test named '", test.name, "'");
  return test.function(*this, input, evaluate(test.arguments));
}

Arguments Interpreter::evaluate(const CallArguments& expressions) {
  Arguments arguments;
  for (const Expression& value : expressions.positional) {
    arguments.positional.push_back(evaluate(value));
  }
  if (expressions.more_positional != nullptr) {
    for (Value& value : iterate(evaluate(*expressions.more_positional))) {
      arguments.positional.push_back(std::move(value));
    }
  }
  for (const auto& [name, value] : expressions.named) {
    arguments.named.emplace_back(name, evaluate(value));
  }
  if (expressions.more_named != nullptr) {
    const Value more = evaluate(*expressions.more_named);
    if (more.dict() == nullptr) refuse("the argument behind ** is not a dictionary");
    for (const auto& [key, value] : more.dict()->entries) {
      if (key.text() == nullptr) refuse("keywords must be strings");
      arguments.named.emplace_back(key.text()->bytes, value);
    }
  }
  return arguments;
}

Value Interpreter::call(const Value& callee, Arguments& arguments) {
  if (const Callable* const function = callee.callable()) return function->call(*this, arguments);
  if (const Loop* const loop = callee.loop()) {
    if (!loop->recursion) {
      refuse("the loop must have the 'recursive' marker to be called recursively");
    }
    if (arguments.positional.size() != 1) refuse("a recursive loop takes the items to loop over");
    return loop->recursion(arguments.positional.front());
  }
  if (const auto* const missing = std::get_if<Undefined>(&callee.form())) refuse(*missing->reason);
  refuse("'", callee.type_name(), "' object is not callable");
}

Value Interpreter::applied(const Filter& filter, const Value& input) {
  if (filter.function == nullptr) refuse("no filter named '", filter.name, "'");
  return filter.function(*this, input, evaluate(filter.arguments));
}

Value Interpreter::filtered(const Value& input,
                            const std::string& name,
                            const Arguments& arguments) {
  const FilterFunction filter = find_filter(name);
  if (filter == nullptr) refuse("no filter named '", name, "'");
  return filter(*this, input, arguments);
}

bool Interpreter::tested(const Value& input, const std::string& name, const Arguments& arguments) {
  const TestFunction test = find_test(name);
  if (test == nullptr) refuse("no test named '", name, "'");
  return test(*this, input, arguments);
}

namespace {

Value loop_attribute(const Loop& loop, std::string_view name) {
  const auto size = std::ssize(*loop.items);
  const auto index = static_cast<std::int64_t>(loop.index);
  if (name == "index0") return index;
  if (name == "index") return index + 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == size;
  if (name == "length") return std::int64_t{size};
  if (name == "revindex") return size - index;
  if (name == "revindex0") return size - index - 1;
  if (name == "depth") return static_cast<std::int64_t>(loop.depth + 1);
  if (name == "depth0") return static_cast<std::int64_t>(loop.depth);
  if (name == "previtem" && index > 0) return (*loop.items)[loop.index - 1];
  if (name == "nextitem" && index + 1 < size) return (*loop.items)[loop.index + 1];
  if (name == "previtem") return Value::undefined("there is no previous item");
  if (name == "nextitem") return Value::undefined("there is no next item");
  return Value::undefined("'LoopContext object' has no attribute '" + std::string(name) + "'");
}

}  // namespace

Value Interpreter::attribute(const Value& object, const std::string& name) {
  if (const auto* const missing = std::get_if<Undefined>(&object.form())) refuse(*missing->reason);
  if (const MethodFunction method = find_method(object, name)) {
    return Callable{name, [object, method](Interpreter& interpreter, Arguments& arguments) {
                      return method(interpreter, object, arguments);
                    }};
  }
  const Dict* dict = object.dict();
  if (object.name_space() != nullptr) dict = &object.name_space()->attributes;
  if (dict != nullptr) {
    spend_steps(std::ssize(dict->entries) / 2);
    if (const Value* const value = dict->at(name)) return *value;
  }
  if (object.list() != nullptr && object.list()->is_group) {
    if (name == "grouper") return object.list()->items.front();
    if (name == "list") return object.list()->items.back();
  }
  if (object.loop() != nullptr) return loop_attribute(*object.loop(), name);
  if (object.callable() != nullptr && name == "name") return Text{object.callable()->name};
  return Value::undefined("'" + object_name(object) + "' has no attribute '" + name + "'");
}

Value Interpreter::item(const Value& object, const Value& index) {
  if (const auto* const missing = std::get_if<Undefined>(&object.form())) refuse(*missing->reason);
  if (const Dict* const dict = object.dict()) {
    spend_steps(std::ssize(dict->entries) / 2 + index.weight() / 16);
    if (const Value* const value = dict->find(index)) return *value;
  }
  std::int64_t at = 0;
  const bool is_list = object.sequence() != nullptr;
  if ((is_list || object.text() != nullptr) && index.as_whole(at)) {
    const std::int64_t size = is_list ? std::ssize(object.list()->items)
                                      : static_cast<std::int64_t>(length(object.text()->bytes));
    spend_steps(is_list ? 0 : std::ssize(object.text()->bytes) / 8);
    if (at < 0) at += size;
    if (at >= 0 && at < size) {
      if (is_list) return object.list()->items[static_cast<std::size_t>(at)];
      return character(*object.text(), static_cast<std::size_t>(at));
    }
  }
  if (index.text() != nullptr) return attribute(object, index.text()->bytes);
  return Value::undefined(object_name(object) + " has no element " + to_repr(index));
}

std::vector<Value> Interpreter::iterate(const Value& value) {
  std::vector<Value> items;
  if (List* const list = value.list()) {
    if (!list->consumed) items = list->items;
    list->consumed = list->kind == List::Kind::generator;
  } else if (const Dict* const dict = value.dict()) {
    for (const auto& [key, held] : dict->entries) items.push_back(key);
  } else if (const Text* const text = value.text()) {
    spend_steps(4 * std::ssize(text->bytes));
    for (Text& one : characters(*text)) items.emplace_back(std::move(one));
  } else if (!value.is_undefined()) {
    refuse("'", value.type_name(), "' object is not iterable");
  }
  spend_steps(std::ssize(items));
  return items;
}

// Statements.

Interpreter::Flow Interpreter::execute(const Body& body) {
  const Deeper deeper(*this);
  for (const Statement& statement : body) {
    spend_steps(1);
    at_ = statement.at;
    const Flow flow =
        std::visit([this](const auto& form) { return execute(form); }, statement.form);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const TextOutput& output) {
  spend_text(output.text.size());
  output_->append(output.text);
  return Flow::next;
}

void Interpreter::write(const Value& value) {
  if (const Text* const text = value.text()) {
    spend_text(text->bytes.size());
    output_->append(*text);
    return;
  }
  output_->append(text_of(value));
}

Interpreter::Flow Interpreter::execute(const ValueOutput& output) {
  write(evaluate(output.value));
  return Flow::next;
}

std::vector<Value> Interpreter::fitting(const For& loop, std::vector<Value> items) {
  if (loop.condition == nullptr) return items;
  std::vector<Value> fit;
  for (Value& item : items) {
    const OpenScope scope(*this, scope_);
    assign(loop.target, item);
    if (evaluate(*loop.condition).truth()) fit.push_back(std::move(item));
  }
  return fit;
}

Interpreter::Flow Interpreter::execute(const For& loop) {
  return run_loop(loop, iterate(evaluate(loop.items)), 0);
}

Interpreter::Flow Interpreter::run_loop(const For& loop,
                                        std::vector<Value> all,
                                        std::size_t depth) {
  const auto items = std::make_shared<const std::vector<Value>>(fitting(loop, std::move(all)));
  const auto state = std::make_shared<Loop>();
  state->items = items;
  state->depth = depth;
  if (loop.recursive) {
    capture_scope();
    state->recursion = [this, &loop, depth, scope = scope_](const Value& inner) {
      const OpenScope same(*this, scope);
      return Value(captured([&] { run_loop(loop, iterate(inner), depth + 1); }));
    };
  }
  bool completed = false;  // some iteration reached the end of the body
  for (; state->index < items->size(); ++state->index) {
    const OpenScope scope(*this, scope_);
    if (loop_symbol_ >= 0) assign(loop_symbol_, state);
    assign(loop.target, (*items)[state->index]);
    const Flow flow = execute(loop.body);
    if (flow == Flow::break_loop) break;
    if (flow == Flow::next) completed = true;
  }
  if (completed) return Flow::next;
  const OpenScope scope(*this, scope_);
  return execute(loop.otherwise);
}

Interpreter::Flow Interpreter::execute(const If& branches) {
  for (const auto& [condition, body] : branches.branches) {
    if (evaluate(condition).truth()) return execute(body);
  }
  return execute(branches.otherwise);
}

Interpreter::Flow Interpreter::execute(const Set& set) {
  assign(set.target, evaluate(set.value));
  return Flow::next;
}

template <class Write>
Text Interpreter::captured(const Write& write_it) {
  Text text;
  Text* const outer = std::exchange(output_, &text);
  try {
    write_it();
  } catch (...) {
    output_ = outer;
    throw;
  }
  output_ = outer;
  return text;
}

Value Interpreter::apply(const std::vector<Expression>& chain, Value value) {
  for (const Expression& expression : chain) {
    value = applied(std::get<Filter>(expression.form), value);
  }
  return value;
}

Interpreter::Flow Interpreter::execute(const SetBlock& set) {
  Text text = captured([&] {
    const OpenScope scope(*this, scope_);
    execute(set.body);
  });
  assign(set.target, apply(set.filters, std::move(text)));
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const FilterBlock& block) {
  Text text = captured([&] {
    const OpenScope scope(*this, scope_);
    execute(block.body);
  });
  write(apply(block.filters, std::move(text)));
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const With& with) {
  std::vector<Value> values;
  for (const auto& [target, expression] : with.variables) values.push_back(evaluate(expression));
  const OpenScope scope(*this, scope_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    assign(with.variables[i].target, std::move(values[i]));
  }
  return execute(with.body);
}

Interpreter::Flow Interpreter::execute(const Generation& generation) {
  const OpenScope scope(*this, scope_);
  const std::size_t begin = output_->bytes.size();
  const Flow flow = execute(generation.body);
  output_->origins.push_back({begin, output_->bytes.size(), generated});
  return flow;
}

// Macros.

Value Interpreter::make_macro(std::shared_ptr<const MacroForm> form) {
  capture_scope();
  std::string name = form->name;
  return Callable{std::move(name), [this, form = std::move(form), definition = scope_](
                                       Interpreter&, Arguments& arguments) {
                    return call_macro(*form, definition, arguments);
                  }};
}

Interpreter::Flow Interpreter::execute(const Macro& macro) {
  assign(macro.symbol, make_macro(macro.form));
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const CallBlock& block) {
  const Call& expression = std::get<Call>(block.call.form);
  const Value callee = evaluate(*expression.callee);
  Arguments arguments = evaluate(expression.arguments);
  arguments.named.emplace_back("caller", make_macro(block.caller));
  write(call(callee, arguments));
  return Flow::next;
}

Value Interpreter::call_macro(const MacroForm& form, Scope* definition, Arguments& arguments) {
  const Deeper deeper(*this);
  const Position at = at_;
  const OpenScope scope(*this, definition);
  bind(form, arguments);
  Text text = captured([&] { execute(form.body); });
  at_ = at;
  return text;
}

void Interpreter::bind(const MacroForm& form, Arguments& arguments) {
  const std::size_t size = form.parameters.size();
  const std::size_t without_default = size - form.defaults.size();
  for (std::size_t i = 0; i < size; ++i) {
    const Symbol symbol = form.parameters[i];
    const std::string& name = parsed_.names[static_cast<std::size_t>(symbol)];
    const auto named =
        std::ranges::find(arguments.named, name, &std::pair<std::string, Value>::first);
    if (i < arguments.positional.size()) {
      if (named != arguments.named.end()) {
        refuse("macro '", form.name, "' got multiple values for argument '", name, "'");
      }
      assign(symbol, std::move(arguments.positional[i]));
    } else if (named != arguments.named.end()) {
      assign(symbol, std::move(named->second));
      arguments.named.erase(named);
    } else if (i >= without_default) {
      assign(symbol, evaluate(form.defaults[i - without_default]));
    } else {
      assign(symbol, Value::undefined("parameter '" + name + "' was not provided"));
    }
  }
  bind_others(form, arguments);
}

/// Binds what the macro has no parameters for to varargs, kwargs and caller, as far as it uses
/// them.
void Interpreter::bind_others(const MacroForm& form, Arguments& arguments) {
  const std::size_t size = std::min(form.parameters.size(), arguments.positional.size());
  arguments.positional.erase(arguments.positional.begin(),
                             arguments.positional.begin() + static_cast<std::ptrdiff_t>(size));
  if (form.varargs >= 0) {
    assign(form.varargs, make_list(std::move(arguments.positional), List::Kind::tuple));
  } else if (!arguments.positional.empty()) {
    refuse("macro '", form.name, "' takes not more than ", std::to_string(size), " argument(s)");
  }
  Dict others;
  for (auto& [name, value] : arguments.named) {
    if (name == "caller" && form.caller >= 0) {
      assign(form.caller, std::move(value));
    } else if (form.kwargs >= 0 && name != "caller") {
      others.set(Text{name}, std::move(value));
    } else {
      refuse("macro '", form.name, "' takes no keyword argument '", name, "'");
    }
  }
  if (form.kwargs >= 0) assign(form.kwargs, std::move(others));
}

}  // namespace dstrain::jinja
