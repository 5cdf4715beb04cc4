#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/tokenizer/border.h"
#include "runtime/tokenizer/growth_limit.h"
#include "runtime/tokenizer/json_field.h"
#include "runtime/tokenizer/pattern.h"

namespace dstrain::tokenizer {

/// A text while it is prepared for the model.
struct Passage {
  std::string text;
  /// Whether its first character comes from the first one of the input. Metaspace needs this.
  bool begins_input = true;
  /// Whether it continues a text whose beginning was encoded before. Prepend needs this.
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

  /// Throws Error{input} if the text exceeds its limit.
  virtual void apply(Passage& passage, MatchMemory& memory) const = 0;
  /// See Border.
  [[nodiscard]] virtual bool allows_cut(Border& border) const = 0;
};

using Normalizers = std::vector<std::unique_ptr<Normalizer>>;

/// Reads the "normalizer" of tokenizer.json, with sequences flattened. Throws Error{input}.
Normalizers read_normalizers(const JsonField& field);

}  // namespace dstrain::tokenizer
