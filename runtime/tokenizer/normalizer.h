#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/tokenizer/border.h"
#include "runtime/tokenizer/growth_limit.h"
#include "runtime/tokenizer/json_field.h"
#include "runtime/tokenizer/pattern.h"

namespace dstrain::tokenizer {

/// A text on its way to the model.
struct Passage {
  std::string text;
  /// Whether its first character stands for the first one of what was encoded. Metaspace asks.
  bool begins_input = true;
  /// Whether it goes on a text whose beginning was encoded before. Prepend asks.
  bool follows = false;
  GrowthLimit limit{};
};

/// Rewrites texts before they are cut into words. Immutable, so threads may share one.
class Normalizer {
 public:
  Normalizer() = default;
  Normalizer(const Normalizer&) = delete;
  Normalizer& operator=(const Normalizer&) = delete;
  virtual ~Normalizer() = default;

  /// Throws Error{input} for a text that grows beyond its limit.
  virtual void apply(Passage& passage, MatchMemory& memory) const = 0;
  /// See Border.
  [[nodiscard]] virtual bool allows_cut(Border& border) const = 0;
};

using Normalizers = std::vector<std::unique_ptr<Normalizer>>;

/// The "normalizer" of tokenizer.json, sequences flattened. Throws Error{input}.
Normalizers read_normalizers(const JsonField& field);

}  // namespace dstrain::tokenizer
