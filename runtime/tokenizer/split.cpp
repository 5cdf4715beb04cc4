#include "runtime/tokenizer/split.h"

namespace dstrain::tokenizer {

std::optional<SplitBehavior> split_behavior(std::string_view name) {
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  return std::nullopt;
}

void Splitter::add(const SplitPart& part) {
  bool extends = false;  // whether to extend the previous word
  switch (behavior_) {
    case SplitBehavior::removed:
      if (part.delimiter) return;
      break;
    case SplitBehavior::isolated:
      break;
    case SplitBehavior::merged_with_previous:
      extends = part.delimiter && !after_delimiter_;
      break;
    case SplitBehavior::contiguous:
      extends = part.delimiter == after_delimiter_;
      break;
    case SplitBehavior::merged_with_next:
      return add_merged_with_next(part);
  }
  if (extends && !empty_) {
    words_.back().end = part.span.end;
  } else {
    words_.push_back(part.span);
  }
  empty_ = false;
  after_delimiter_ = part.delimiter;
}

void Splitter::add_merged_with_next(const SplitPart& part) {
  if (part.delimiter) {
    finish();
    held_ = part.span;
  } else {
    words_.push_back({held_ ? held_->begin : part.span.begin, part.span.end});
    held_.reset();
  }
}

void Splitter::finish() {
  if (held_) words_.push_back(*held_);
  held_.reset();
}

}  // namespace dstrain::tokenizer
