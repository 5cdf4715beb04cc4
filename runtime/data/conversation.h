#pragma once
#include <vector>

#include <nlohmann/json.hpp>

namespace dstrain::data {

/// A conversation, as a chat template sees it.
struct Conversation {
  /// Array of objects, at least one. Each has "role" (a string): user, assistant, system, tool,
  /// developer or ipython. The other keys are those of the record, in its order, except null ones
  /// (but for "content"). "content" is a string, null, absent or a list of parts of text.
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  /// Object: "tools", "documents" and the members of "chat_template_kwargs", as far as the record
  /// has them.
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  /// One per message: whether its text counts if the role is assistant.
  std::vector<bool> learned;
};

}  // namespace dstrain::data
