#pragma once
#include <cstdint>
#include <vector>

#include "runtime/tokenizer/json_field.h"

namespace dstrain::tokenizer {

/// The special tokens before and after a text.
struct PostProcessor {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> after;
};

/// Reads the "post_processor" of tokenizer.json, as far as it applies to single texts. Throws
/// Error{input}.
PostProcessor read_post_processor(const JsonField& field);

}  // namespace dstrain::tokenizer
