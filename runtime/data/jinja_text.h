#pragma once
#include <string>
#include <string_view>

namespace dstrain::data {

/// A Jinja template with all that changes nothing in what it renders taken out, so that two
/// spellings of one template become the same: comments, white space within tags but for words that
/// need it, and the white space around tags that `-` marks and transformers' options (trim_blocks,
/// lstrip_blocks) take away. Quotes become single ones and line ends in strings "\n".
std::string plain_jinja(std::string_view jinja);

}  // namespace dstrain::data
