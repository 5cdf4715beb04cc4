#pragma once
#include <map>
#include <string>

namespace dstrain::data {

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
