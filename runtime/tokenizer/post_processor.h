#pragma once
#include <cstdint>
#include <vector>

#include "runtime/tokenizer/json_field.h"

namespace dstrain::tokenizer {

/// The special tokens that go around a text.
struct PostProcessor {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> after;
};

/// The "post_processor" of tokenizer.json, as far as it concerns one text. Throws Error{input}.
PostProcessor read_post_processor(const JsonField& field);

}  // namespace dstrain::tokenizer
