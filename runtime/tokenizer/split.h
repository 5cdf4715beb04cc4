#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/pattern.h"

namespace dstrain::tokenizer {

/// What to do with the delimiters at which a text is split.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

std::optional<SplitBehavior> split_behavior(std::string_view name);

/// A part of a text, and whether it is a delimiter.
struct SplitPart {
  Span span;
  bool delimiter = false;
};

/// Receives the parts of a text in order and appends the resulting words to a list.
class Splitter {
 public:
  Splitter(SplitBehavior behavior, std::vector<Span>& words) : behavior_(behavior), words_(words) {}

  void add(const SplitPart& part);
  /// Call after the last part.
  void finish();

 private:
  void add_merged_with_next(const SplitPart& part);

  SplitBehavior behavior_;
  std::vector<Span>& words_;
  bool after_delimiter_ = false;
  bool empty_ = true;
  std::optional<Span> held_;  ///< a delimiter that waits for the next part
};

}  // namespace dstrain::tokenizer
