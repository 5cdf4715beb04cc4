#pragma once
#include <string>
#include <string_view>

namespace dstrain::data {

/// Returns a Jinja template without everything that does not change its output, so that two
/// spellings of one template become the same. Removes comments, white space within tags except
/// between words, and the white space around tags that `-` and transformers' options (trim_blocks,
/// lstrip_blocks) remove. Quotes become single ones and line ends in strings "\n".
std::string plain_jinja(std::string_view jinja);

}  // namespace dstrain::data
