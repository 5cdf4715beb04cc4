#pragma once
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/data/jinja/builtins.h"
#include "runtime/data/jinja/lexer.h"
#include "runtime/data/jinja/value.h"

/// A parsed template. Names of variables are numbers, symbols, which index ParsedTemplate::names.
namespace dstrain::jinja {

struct Expression;
struct NamedArgument;
struct DictEntry;
struct ComparedTo;
struct Statement;
struct Branch;
struct Assignment;
using ExpressionPtr = std::unique_ptr<Expression>;  ///< null where a part is optional
using Body = std::vector<Statement>;
using Symbol = int;

struct CallArguments {
  std::vector<Expression> positional;
  std::vector<NamedArgument> named;
  ExpressionPtr more_positional;  ///< *list
  ExpressionPtr more_named;       ///< **dictionary
};

struct Constant {
  Value value;
};
struct Name {
  Symbol symbol;
};
struct ListLiteral {
  std::vector<Expression> items;
  List::Kind kind;
};
struct DictLiteral {
  std::vector<DictEntry> entries;
};
struct Unary {
  enum class Operator { logical_not, negative, positive };
  Operator operation;
  ExpressionPtr operand;
};
struct Binary {
  Operator operation;
  ExpressionPtr left;
  ExpressionPtr right;
};
/// Texts joined by ~.
struct Concatenation {
  std::vector<Expression> parts;
};
struct Logical {
  bool is_and;
  ExpressionPtr left;
  ExpressionPtr right;
};
struct Comparison {
  ExpressionPtr first;
  std::vector<ComparedTo> rest;
};
struct Conditional {
  ExpressionPtr condition;
  ExpressionPtr yes;
  ExpressionPtr no;  ///< may be null
};
struct Attribute {
  ExpressionPtr object;
  std::string name;
};
struct Item {
  ExpressionPtr object;
  ExpressionPtr index;
};
struct Slice {
  ExpressionPtr object;
  ExpressionPtr from;  ///< each may be null
  ExpressionPtr to;
  ExpressionPtr step;
};
struct Call {
  ExpressionPtr callee;
  CallArguments arguments;
};
struct Filter {
  ExpressionPtr input;  ///< null: the body of a filter block
  std::string name;
  FilterFunction function;  ///< null: there is none of this name
  CallArguments arguments;
};
struct Test {
  ExpressionPtr input;
  std::string name;
  TestFunction function;
  CallArguments arguments;
};

struct Expression {
  Position at;
  int depth = 1;  ///< of expressions in each other
  std::variant<Constant,
               Name,
               ListLiteral,
               DictLiteral,
               Unary,
               Binary,
               Concatenation,
               Logical,
               Comparison,
               Conditional,
               Attribute,
               Item,
               Slice,
               Call,
               Filter,
               Test>
      form;
};

struct NamedArgument {
  std::string name;
  Expression value;
};
struct DictEntry {
  Expression key;
  Expression value;
};
struct ComparedTo {
  Operator operation;
  Expression value;
};

struct TextOutput {
  std::string text;
};
struct ValueOutput {
  Expression value;
};
/// A variable; an attribute of a namespace; or several of them, for the items of a value.
struct Target {
  Symbol name = -1;
  std::string attribute{};      ///< of the namespace `name`; empty: none
  std::vector<Target> parts{};  ///< empty: it is one
};
struct For {
  Target target;
  Expression items;
  ExpressionPtr condition;  ///< may be null
  bool recursive;
  Body body;
  Body otherwise;
};
struct If {
  std::vector<Branch> branches;
  Body otherwise;
};
struct Set {
  Target target;
  Expression value;
};
struct SetBlock {
  Target target;
  std::vector<Expression> filters;  ///< each a Filter without input
  Body body;
};
struct MacroForm {
  std::string name;
  std::vector<Symbol> parameters;
  std::vector<Expression> defaults;  ///< of the last parameters
  Symbol varargs = -1;               ///< of variables that the body uses; -1: it does not
  Symbol kwargs = -1;
  Symbol caller = -1;
  Body body;
};
struct Macro {
  Symbol symbol;
  std::shared_ptr<const MacroForm> form;
};
struct CallBlock {
  Expression call;
  std::shared_ptr<const MacroForm> caller;
};
struct FilterBlock {
  std::vector<Expression> filters;
  Body body;
};
struct With {
  std::vector<Assignment> variables;
  Body body;
};
struct Generation {
  Body body;
};
struct Break {};
struct Continue {};

struct Statement {
  Position at;
  std::variant<TextOutput,
               ValueOutput,
               For,
               If,
               Set,
               SetBlock,
               Macro,
               CallBlock,
               FilterBlock,
               With,
               Generation,
               Break,
               Continue>
      form;
};

struct Branch {
  Expression condition;
  Body body;
};
struct Assignment {
  Target target;
  Expression value;
};

struct ParsedTemplate {
  Body body;
  std::vector<std::string> names;  ///< by symbol
  bool marks_generation = false;   ///< {% generation %} occurs
};

/// Throws SyntaxError.
ParsedTemplate parse_template(std::string_view source);

}  // namespace dstrain::jinja
