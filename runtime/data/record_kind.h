#pragma once
#include <cstdint>
#include <map>
#include <string>
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

/// How records are read.
struct RecordOptions {
  /// The key of texts; empty: keys say what a record is.
  std::string text_column{};
  /// Roles under other names: {"narrator", "system"}.
  std::map<std::string, std::string> role_names{};
  /// Whether a question with its answer becomes a conversation, or else prompt and completion.
  bool has_chat_template = false;
};

/// Returns a text that differs if a user has chosen other options; empty: the defaults.
std::string describe(const RecordOptions& options);

}  // namespace dstrain::data
