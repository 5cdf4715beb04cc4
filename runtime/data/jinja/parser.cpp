#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "runtime/data/jinja/syntax.h"

namespace dstrain::jinja {
namespace {

/// Bounds recursion over expressions and blocks.
constexpr int nesting_limit = 300;

/// The greatest depth of expressions that a part of another one holds.
int depth_of(const Expression& expression) {
  return expression.depth;
}
int depth_of(const ExpressionPtr& expression) {
  return expression == nullptr ? 0 : expression->depth;
}
int depth_of(const NamedArgument& argument) {
  return argument.value.depth;
}
int depth_of(const DictEntry& entry) {
  return std::max(entry.key.depth, entry.value.depth);
}
int depth_of(const ComparedTo& other) {
  return other.value.depth;
}
template <class Part>
int depth_of(const std::vector<Part>& parts) {
  int depth = 0;
  for (const Part& part : parts) depth = std::max(depth, depth_of(part));
  return depth;
}
int depth_of(const CallArguments& arguments) {
  return std::max({depth_of(arguments.positional), depth_of(arguments.named),
                   depth_of(arguments.more_positional), depth_of(arguments.more_named)});
}

struct DepthOfParts {
  int operator()(const Constant&) const { return 0; }
  int operator()(const Name&) const { return 0; }
  int operator()(const ListLiteral& list) const { return depth_of(list.items); }
  int operator()(const DictLiteral& dict) const { return depth_of(dict.entries); }
  int operator()(const Unary& unary) const { return depth_of(unary.operand); }
  int operator()(const Concatenation& texts) const { return depth_of(texts.parts); }
  int operator()(const Attribute& attribute) const { return depth_of(attribute.object); }
  int operator()(const Binary& form) const { return both(form.left, form.right); }
  int operator()(const Logical& form) const { return both(form.left, form.right); }
  int operator()(const Item& item) const { return both(item.object, item.index); }
  int operator()(const Comparison& form) const { return both(form.first, form.rest); }
  int operator()(const Call& call) const { return both(call.callee, call.arguments); }
  int operator()(const Filter& filter) const { return both(filter.input, filter.arguments); }
  int operator()(const Test& test) const { return both(test.input, test.arguments); }
  int operator()(const Conditional& form) const {
    return std::max(depth_of(form.condition), both(form.yes, form.no));
  }
  int operator()(const Slice& slice) const {
    return std::max(both(slice.object, slice.from), both(slice.to, slice.step));
  }

 private:
  template <class A, class B>
  static int both(const A& a, const B& b) {
    return std::max(depth_of(a), depth_of(b));
  }
};

ExpressionPtr held(Expression expression) {
  return std::make_unique<Expression>(std::move(expression));
}

/// Throws SyntaxError for an expression that is nested too deeply for recursion over it.
Expression made(Position at, decltype(Expression::form) form) {
  const int depth = std::visit(DepthOfParts(), form) + 1;
  if (depth > nesting_limit) throw SyntaxError{"the expression is nested too deeply", at};
  return Expression{at, depth, std::move(form)};
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  ParsedTemplate run() {
    parsed_.body = parse_body({});
    return std::move(parsed_);
  }

 private:
  using Kind = Token::Kind;

  /// Counts nested calls of the parser.
  class Deeper {
   public:
    Deeper(Parser& parser, int levels) : parser_(parser), levels_(levels) {
      parser_.depth_ += levels_;
      if (parser_.depth_ > nesting_limit) parser_.refuse_here("the template is nested too deeply");
    }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    ~Deeper() { parser_.depth_ -= levels_; }

   private:
    Parser& parser_;
    int levels_;
  };

  // Tokens.

  [[nodiscard]] const Token& token() const { return tokens_[next_]; }
  [[nodiscard]] const Token& token_after() const {
    return tokens_[std::min(next_ + 1, tokens_.size() - 1)];
  }
  Token take() {
    Token taken = std::move(tokens_[next_]);
    if (taken.kind == Kind::end) {
      tokens_[next_] = taken;
    } else {
      ++next_;
    }
    return taken;
  }
  [[nodiscard]] bool is_symbol(std::string_view symbol) const {
    return token().kind == Kind::symbol && token().text == symbol;
  }
  [[nodiscard]] bool is_name(std::string_view name) const {
    return token().kind == Kind::name && token().text == name;
  }
  bool take_symbol(std::string_view symbol) {
    if (!is_symbol(symbol)) return false;
    ++next_;
    return true;
  }
  bool take_name(std::string_view name) {
    if (!is_name(name)) return false;
    ++next_;
    return true;
  }
  [[noreturn]] void refuse_here(const std::string& message) const {
    throw SyntaxError{message, token().at};
  }
  [[nodiscard]] std::string found() const {
    switch (token().kind) {
      case Kind::end:
        return "the end of the template";
      case Kind::variable_end:
        return "'}}'";
      case Kind::block_end:
        return "'%}'";
      case Kind::string:
        return "a string";
      default:
        return "'" + token().text + "'";
    }
  }
  void expect_symbol(std::string_view symbol) {
    if (!take_symbol(symbol)) {
      refuse_here("expected '" + std::string(symbol) + "', found " + found());
    }
  }
  std::string expect_name() {
    if (token().kind != Kind::name) refuse_here("expected a name, found " + found());
    return take().text;
  }
  void expect_end(Kind kind) {
    if (token().kind != kind) {
      refuse_here(std::string("expected '") + (kind == Kind::block_end ? "%}" : "}}") +
                  "', found " + found());
    }
    ++next_;
  }

  Symbol symbol_of(const std::string& name) {
    const auto [at, fresh] = symbols_.emplace(name, static_cast<Symbol>(parsed_.names.size()));
    if (fresh) parsed_.names.push_back(name);
    return at->second;
  }

  // Expressions.

  Expression parse_expression() {
    const Deeper deeper(*this, 1);
    Expression value = parse_or();
    while (is_name("if")) {
      const Position at = take().at;
      ExpressionPtr yes = held(std::move(value));
      ExpressionPtr condition = held(parse_or());
      ExpressionPtr no = take_name("else") ? held(parse_expression()) : nullptr;
      value = made(at, Conditional{std::move(condition), std::move(yes), std::move(no)});
    }
    return value;
  }

  Expression parse_or() {
    Expression left = parse_and();
    while (is_name("or")) {
      const Position at = take().at;
      left = made(at, Logical{false, held(std::move(left)), held(parse_and())});
    }
    return left;
  }

  Expression parse_and() {
    Expression left = parse_not();
    while (is_name("and")) {
      const Position at = take().at;
      left = made(at, Logical{true, held(std::move(left)), held(parse_not())});
    }
    return left;
  }

  Expression parse_not() {
    if (!is_name("not")) return parse_comparison();
    const Deeper deeper(*this, 1);
    const Position at = take().at;
    return made(at, Unary{Unary::Operator::logical_not, held(parse_not())});
  }

  /// Returns the one of some operators that is here, without taking it.
  [[nodiscard]] std::optional<Operator> operator_here(
      std::initializer_list<Operator> operators) const {
    if (token().kind != Kind::symbol) return std::nullopt;
    const auto* const found = std::ranges::find(operators, token().text, jinja::symbol_of);
    return found == operators.end() ? std::nullopt : std::optional(*found);
  }

  [[nodiscard]] std::optional<Operator> comparison_here() const {
    if (is_name("in")) return Operator::in;
    const bool is_not_in =
        is_name("not") && token_after().kind == Kind::name && token_after().text == "in";
    if (is_not_in) return Operator::not_in;
    return operator_here({Operator::equal, Operator::not_equal, Operator::less,
                          Operator::less_equal, Operator::greater, Operator::greater_equal});
  }

  Expression parse_comparison() {
    const Position at = token().at;
    Expression first = parse_sum();
    std::vector<ComparedTo> rest;
    for (auto sign = comparison_here(); sign; sign = comparison_here()) {
      next_ += sign == Operator::not_in ? 2U : 1U;
      rest.push_back({*sign, parse_sum()});
    }
    if (rest.empty()) return first;
    return made(at, Comparison{held(std::move(first)), std::move(rest)});
  }

  using Level = Expression (Parser::*)();

  Expression parse_binary(std::initializer_list<Operator> operators, Level level) {
    Expression left = (this->*level)();
    for (auto sign = operator_here(operators); sign; sign = operator_here(operators)) {
      const Position at = take().at;
      left = made(at, Binary{*sign, held(std::move(left)), held((this->*level)())});
    }
    return left;
  }

  Expression parse_sum() {
    return parse_binary({Operator::add, Operator::subtract}, &Parser::parse_concatenation);
  }

  Expression parse_concatenation() {
    const Position at = token().at;
    Expression first = parse_product();
    if (!is_symbol("~")) return first;
    std::vector<Expression> parts;
    parts.push_back(std::move(first));
    while (take_symbol("~")) parts.push_back(parse_product());
    return made(at, Concatenation{std::move(parts)});
  }

  Expression parse_product() {
    return parse_binary(
        {Operator::multiply, Operator::divide, Operator::floor_divide, Operator::modulo},
        &Parser::parse_power);
  }

  Expression parse_power() { return parse_binary({Operator::power}, &Parser::parse_filtered); }

  Expression parse_filtered() { return parse_filters(parse_unary()); }

  Expression parse_unary() {
    const Position at = token().at;
    if (is_symbol("-") || is_symbol("+")) {
      const Deeper deeper(*this, 1);
      const auto operation =
          take().text == "-" ? Unary::Operator::negative : Unary::Operator::positive;
      return parse_postfix(made(at, Unary{operation, held(parse_unary())}));
    }
    return parse_postfix(parse_primary());
  }

  Expression parse_primary() {
    const Position at = token().at;
    const auto constant = [&](Value value) {
      return made(at, Constant{std::move(value)});
    };
    switch (token().kind) {
      case Kind::name:
        return parse_word();
      case Kind::string: {
        std::string text = take().text;
        while (token().kind == Kind::string) text += take().text;
        return constant(Text{std::move(text)});
      }
      case Kind::whole:
        return constant(std::int64_t{std::strtoll(take().text.c_str(), nullptr, 10)});
      case Kind::real: {
        const std::string digits = take().text;
        double number = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
        return constant(number);
      }
      default:
        break;
    }
    if (take_symbol("(")) return parse_parentheses(at);
    if (take_symbol("[")) return parse_list(at);
    if (take_symbol("{")) return parse_dict(at);
    refuse_here("expected an expression, found " + found());
  }

  Expression parse_word() {
    const Token word = take();
    if (word.text == "true" || word.text == "True") return made(word.at, Constant{true});
    if (word.text == "false" || word.text == "False") return made(word.at, Constant{false});
    if (word.text == "none" || word.text == "None") return made(word.at, Constant{None{}});
    used_.insert(word.text);
    return made(word.at, Name{symbol_of(word.text)});
  }

  /// An expression in parentheses, or a tuple.
  Expression parse_parentheses(Position at) {
    std::vector<Expression> items;
    bool is_tuple = is_symbol(")");
    while (!is_symbol(")")) {
      items.push_back(parse_expression());
      if (!take_symbol(",")) break;
      is_tuple = true;
    }
    expect_symbol(")");
    if (!is_tuple) return std::move(items.front());
    return made(at, ListLiteral{std::move(items), List::Kind::tuple});
  }

  Expression parse_list(Position at) {
    std::vector<Expression> items;
    while (!is_symbol("]")) {
      items.push_back(parse_expression());
      if (!take_symbol(",")) break;
    }
    expect_symbol("]");
    return made(at, ListLiteral{std::move(items), List::Kind::list});
  }

  Expression parse_dict(Position at) {
    std::vector<DictEntry> entries;
    while (!is_symbol("}")) {
      Expression key = parse_expression();
      expect_symbol(":");
      Expression value = parse_expression();
      entries.push_back({std::move(key), std::move(value)});
      if (!take_symbol(",")) break;
    }
    expect_symbol("}");
    return made(at, DictLiteral{std::move(entries)});
  }

  Expression parse_postfix(Expression value) {
    for (;;) {
      const Position at = token().at;
      if (take_symbol(".")) {
        value = parse_attribute(at, std::move(value));
      } else if (take_symbol("[")) {
        value = parse_subscript(at, std::move(value));
      } else if (is_symbol("(")) {
        value = parse_call(at, std::move(value));
      } else {
        return value;
      }
    }
  }

  Expression parse_attribute(Position at, Expression value) {
    if (token().kind == Kind::whole) {
      return made(at, Item{held(std::move(value)), held(parse_primary())});
    }
    return made(at, Attribute{held(std::move(value)), expect_name()});
  }

  Expression parse_subscript(Position at, Expression value) {
    std::array<ExpressionPtr, 3> parts;
    std::size_t part = 0;
    while (!is_symbol("]")) {
      if (take_symbol(":")) {
        if (++part > 2) refuse_here("a slice has at most three parts");
        continue;
      }
      if (parts.at(part) != nullptr) refuse_here("expected ']', found " + found());
      parts.at(part) = held(part == 0 ? parse_tuple() : parse_expression());
    }
    if (part == 0 && parts[0] == nullptr) refuse_here("expected an expression, found ']'");
    expect_symbol("]");
    ExpressionPtr object = held(std::move(value));
    if (part == 0) return made(at, Item{std::move(object), std::move(parts[0])});
    return made(at, Slice{std::move(object), std::move(parts[0]), std::move(parts[1]),
                          std::move(parts[2])});
  }

  CallArguments parse_arguments() {
    expect_symbol("(");
    CallArguments arguments;
    while (!is_symbol(")")) {
      if (take_symbol("**")) {
        arguments.more_named = held(parse_expression());
      } else if (take_symbol("*")) {
        arguments.more_positional = held(parse_expression());
      } else if (token().kind == Kind::name && token_after().kind == Kind::symbol &&
                 token_after().text == "=") {
        std::string name = take().text;
        ++next_;
        arguments.named.push_back({std::move(name), parse_expression()});
      } else {
        if (!arguments.named.empty()) refuse_here("a positional argument follows a named one");
        arguments.positional.push_back(parse_expression());
      }
      if (!take_symbol(",")) break;
    }
    expect_symbol(")");
    return arguments;
  }

  Expression parse_call(Position at, Expression callee) {
    ExpressionPtr function = held(std::move(callee));
    return made(at, Call{std::move(function), parse_arguments()});
  }

  /// Filters, tests and calls behind a value.
  Expression parse_filters(Expression value) {
    for (;;) {
      const Position at = token().at;
      if (take_symbol("|")) {
        Filter filter = parse_filter();
        filter.input = held(std::move(value));
        value = made(at, std::move(filter));
      } else if (take_name("is")) {
        value = parse_test(at, std::move(value));
      } else if (is_symbol("(")) {
        value = parse_call(at, std::move(value));
      } else {
        return value;
      }
    }
  }

  Filter parse_filter() {
    Filter filter{nullptr, expect_name(), nullptr, {}};
    filter.function = find_filter(filter.name);
    if (is_symbol("(")) filter.arguments = parse_arguments();
    return filter;
  }

  Expression parse_test(Position at, Expression value) {
    const bool negated = take_name("not");
    Test test{nullptr, expect_name(), nullptr, {}};
    test.function = find_test(test.name);
    const bool is_word = token().kind == Kind::name && !is_name("else") && !is_name("or") &&
                         !is_name("and") && !is_name("if");
    if (is_symbol("(")) {
      test.arguments = parse_arguments();
    } else if (is_word || token().kind == Kind::string || token().kind == Kind::whole ||
               token().kind == Kind::real || is_symbol("[") || is_symbol("{")) {
      if (is_name("is")) refuse_here("tests cannot be chained with is");
      // A name of an operator belongs to the expression around the test.
      if (!is_name("in") && !is_name("not") && !is_name("recursive")) {
        test.arguments.positional.push_back(parse_postfix(parse_primary()));
      }
    }
    test.input = held(std::move(value));
    Expression tested = made(at, std::move(test));
    if (!negated) return tested;
    return made(at, Unary{Unary::Operator::logical_not, held(std::move(tested))});
  }

  /// An expression, or several with commas between them, which are a tuple.
  Expression parse_tuple() {
    const Position at = token().at;
    Expression first = parse_expression();
    if (!is_symbol(",")) return first;
    std::vector<Expression> items;
    items.push_back(std::move(first));
    while (take_symbol(",")) {
      if (token().kind == Kind::block_end || token().kind == Kind::variable_end) break;
      items.push_back(parse_expression());
    }
    return made(at, ListLiteral{std::move(items), List::Kind::tuple});
  }

  // Statements.

  /// Parses until one of `ends`, the names of tags, of which the name is not taken. None: until the
  /// end of the template.
  Body parse_body(std::span<const std::string_view> ends) {
    const Deeper deeper(*this, 4);
    const Position begin = token().at;
    Body body;
    for (;;) {
      const Position at = token().at;
      switch (token().kind) {
        case Kind::text:
          body.push_back({at, TextOutput{take().text}});
          break;
        case Kind::variable_begin:
          ++next_;
          body.push_back({at, ValueOutput{parse_tuple()}});
          expect_end(Kind::variable_end);
          break;
        case Kind::block_begin:
          ++next_;
          if (token().kind == Kind::name && std::ranges::find(ends, token().text) != ends.end()) {
            return body;
          }
          parse_statement(at, body);
          break;
        default:
          if (ends.empty()) return body;
          throw SyntaxError{
              "the block that begins here does not end: there is no " + std::string(ends.back()),
              begin};
      }
    }
  }

  /// Parses until the tag `end`, which is taken.
  Body parse_block(std::string_view end) {
    expect_end(Kind::block_end);
    Body body = parse_body(std::array{end});
    ++next_;
    // {% endmacro name %}
    if (end != "endif" && token().kind == Kind::name) ++next_;
    expect_end(Kind::block_end);
    return body;
  }

  void parse_statement(Position at, Body& body) {
    const std::string word = expect_name();
    if (word == "if") {
      body.push_back({at, parse_if()});
    } else if (word == "for") {
      body.push_back({at, parse_for()});
    } else if (word == "set") {
      parse_set(at, body);
    } else if (word == "macro") {
      body.push_back({at, parse_macro()});
    } else if (word == "call") {
      body.push_back({at, parse_call_block()});
    } else if (word == "filter") {
      std::vector<Expression> chain = parse_filter_chain();
      body.push_back({at, FilterBlock{std::move(chain), parse_block("endfilter")}});
    } else if (word == "with") {
      body.push_back({at, parse_with()});
    } else if (word == "generation") {
      parsed_.marks_generation = true;
      body.push_back({at, Generation{parse_block("endgeneration")}});
    } else if (word == "break" || word == "continue") {
      if (loops_ == 0) refuse_here(word + " is outside of a loop");
      if (word == "break") {
        body.push_back({at, Break{}});
      } else {
        body.push_back({at, Continue{}});
      }
      expect_end(Kind::block_end);
    } else {
      refuse_tag(word, at);
    }
  }

  [[noreturn]] static void refuse_tag(const std::string& word, Position at) {
    static constexpr std::array<std::string_view, 7> others{
        "include", "import", "from", "extends", "block", "autoescape", "do"};
    if (std::ranges::find(others, word) != others.end()) {
      throw SyntaxError{"the tag '" + word + "' is not implemented; a chat template is one text",
                        at};
    }
    throw SyntaxError{"unknown tag '" + word + "'", at};
  }

  If parse_if() {
    static constexpr std::array<std::string_view, 3> ends{"elif", "else", "endif"};
    If statement;
    for (;;) {
      Expression condition = parse_tuple();
      expect_end(Kind::block_end);
      Body body = parse_body(ends);
      statement.branches.push_back({std::move(condition), std::move(body)});
      const std::string word = take().text;
      if (word == "elif") continue;
      if (word == "else") {
        statement.otherwise = parse_block("endif");
      } else {
        expect_end(Kind::block_end);
      }
      return statement;
    }
  }

  Target parse_target_part(bool with_attribute) {
    if (take_symbol("(")) {
      const Deeper deeper(*this, 1);
      Target target = parse_target(with_attribute);
      expect_symbol(")");
      return target;
    }
    Target target{symbol_of(expect_name())};
    if (with_attribute && take_symbol(".")) target.attribute = expect_name();
    return target;
  }

  Target parse_target(bool with_attribute) {
    Target first = parse_target_part(with_attribute);
    if (!is_symbol(",")) return first;
    Target target;
    target.parts.push_back(std::move(first));
    while (take_symbol(",")) {
      if (token().kind != Kind::name && !is_symbol("(")) break;
      if (is_name("in")) break;
      target.parts.push_back(parse_target_part(with_attribute));
    }
    return target;
  }

  For parse_for() {
    static constexpr std::array<std::string_view, 2> ends{"else", "endfor"};
    Target target = parse_target(false);
    if (!take_name("in")) refuse_here("expected 'in', found " + found());
    Expression items = parse_for_items();
    ExpressionPtr condition = take_name("if") ? held(parse_expression()) : nullptr;
    const bool recursive = take_name("recursive");
    expect_end(Kind::block_end);
    ++loops_;
    Body body = parse_body(ends);
    --loops_;
    Body otherwise;
    if (take().text == "else") {
      otherwise = parse_block("endfor");
    } else {
      expect_end(Kind::block_end);
    }
    return For{std::move(target), std::move(items), std::move(condition),
               recursive,         std::move(body),  std::move(otherwise)};
  }

  /// The items of a loop: not a conditional expression, because `if` begins the loop's condition.
  Expression parse_for_items() {
    const Position at = token().at;
    Expression first = parse_or();
    if (!is_symbol(",")) return first;
    std::vector<Expression> items;
    items.push_back(std::move(first));
    while (take_symbol(",")) items.push_back(parse_or());
    return made(at, ListLiteral{std::move(items), List::Kind::tuple});
  }

  void parse_set(Position at, Body& body) {
    Target target = parse_target(true);
    if (take_symbol("=")) {
      body.push_back({at, Set{std::move(target), parse_tuple()}});
      expect_end(Kind::block_end);
      return;
    }
    std::vector<Expression> chain;
    if (take_symbol("|")) chain = parse_filter_chain();
    body.push_back({at, SetBlock{std::move(target), std::move(chain), parse_block("endset")}});
  }

  std::vector<Expression> parse_filter_chain() {
    std::vector<Expression> chain;
    do {
      const Position at = token().at;
      chain.push_back(made(at, parse_filter()));
    } while (take_symbol("|"));
    return chain;
  }

  /// The parameters of a macro, in parentheses.
  void parse_parameters(MacroForm& macro) {
    expect_symbol("(");
    while (!is_symbol(")")) {
      macro.parameters.push_back(symbol_of(expect_name()));
      if (take_symbol("=")) {
        macro.defaults.push_back(parse_expression());
      } else if (!macro.defaults.empty()) {
        refuse_here("a parameter without a default follows one with a default");
      }
      if (!take_symbol(",")) break;
    }
    expect_symbol(")");
  }

  /// A macro's body is outside of the loops around it. Notes which of the variables it uses that a
  /// macro has besides its parameters.
  void parse_macro_body(MacroForm& macro, std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    const auto outer = std::exchange(used_, {});
    macro.body = parse_block(end);
    const auto used = [&](const std::string& name) {
      return used_.contains(name) ? symbol_of(name) : -1;
    };
    macro.varargs = used("varargs");
    macro.kwargs = used("kwargs");
    macro.caller = used("caller");
    used_ = outer;
    loops_ = loops;
  }

  Macro parse_macro() {
    auto form = std::make_shared<MacroForm>();
    form->name = expect_name();
    const Symbol symbol = symbol_of(form->name);
    parse_parameters(*form);
    parse_macro_body(*form, "endmacro");
    return {symbol, std::move(form)};
  }

  CallBlock parse_call_block() {
    auto caller = std::make_shared<MacroForm>();
    caller->name = "caller";
    if (is_symbol("(")) parse_parameters(*caller);
    Expression call = parse_expression();
    if (!std::holds_alternative<Call>(call.form)) {
      throw SyntaxError{"the tag call needs a call of a macro", call.at};
    }
    parse_macro_body(*caller, "endcall");
    return CallBlock{std::move(call), std::move(caller)};
  }

  With parse_with() {
    With with;
    while (token().kind != Kind::block_end) {
      if (!with.variables.empty()) expect_symbol(",");
      Target target = parse_target(false);
      expect_symbol("=");
      with.variables.push_back({std::move(target), parse_expression()});
    }
    with.body = parse_block("endwith");
    return with;
  }

  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  int depth_ = 0;
  int loops_ = 0;
  ParsedTemplate parsed_;
  std::map<std::string, Symbol> symbols_;
  std::set<std::string> used_;  ///< names in the current macro
};

}  // namespace

ParsedTemplate parse_template(std::string_view source) {
  return Parser(tokenize(source)).run();
}

}  // namespace dstrain::jinja
