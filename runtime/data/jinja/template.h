#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/data/jinja/value.h"

namespace dstrain::jinja {

/// A chat template: text with the part of Jinja that such templates use, in the environment that
/// transformers gives them (trim_blocks, lstrip_blocks, its tojson, a sandbox). Has expressions,
/// filters, tests, set, if, for with loop and break, macro, call, with, filter, raw and generation;
/// no include, import or inheritance. Immutable, so threads may share one.
///
/// Rendering is bounded: a template that runs long, makes much text or calls itself deeply fails,
/// within a second.
class Template {
 public:
  /// The failure begins with the place, "line 3, column 7: ".
  static Result<Template> parse(std::string_view source);

  using Variables = std::vector<std::pair<std::string, Value>>;
  /// Besides the variables, a template has range, dict, namespace, joiner and raise_exception. The
  /// text has the origins of texts in the variables, and `generated`. The failure begins with the
  /// place, or is what the template said in raise_exception.
  [[nodiscard]] Result<Text> render(const Variables& variables) const;

  /// Whether {% generation %} occurs, and whether a variable or function is named.
  [[nodiscard]] bool marks_generation() const;
  [[nodiscard]] bool names(std::string_view variable) const;

 private:
  struct Parsed;
  explicit Template(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace dstrain::jinja
