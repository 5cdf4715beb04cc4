#pragma once
#include <cstdint>
#include <string_view>

namespace dstrain::data {

/// What a record is for the tokenizer; all records of a file are of one kind.
enum class RecordKind : std::uint32_t {
  text,        ///< all of it is learned
  completion,  ///< a prompt, and the text after it, which is learned
  messages,    ///< a conversation, of which answers are learned
};

/// Returns "text", "prompt and completion", "messages".
std::string_view name_of(RecordKind kind);

}  // namespace dstrain::data
