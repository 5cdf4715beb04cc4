#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "runtime/data/json_record.h"

namespace dstrain::data {

/// Returns the value under a key; null: there is none, or it is null.
const nlohmann::ordered_json* find_value(const nlohmann::ordered_json& object,
                                         std::string_view key);

/// Whether a value says nothing: null, a boolean, or an empty text, list or object, also
/// LLaMA-Factory's empty list in a string, "[]".
bool says_nothing(const nlohmann::ordered_json& value);

/// Returns a list, or the list that a string holds as JSON, as tables have it; none: it is neither,
/// and `value` is unchanged.
std::optional<nlohmann::ordered_json> list_in(nlohmann::ordered_json& value);

/// Refuses images, audio and video under a key of a record or a message.
void refuse_media(const nlohmann::ordered_json& object, const std::string& place);

/// Makes a conversation of turns as other programs write them: speakers and texts under other keys,
/// roles under other names, calls of tools as turns of their own, and answers that are not learned.
class Turns {
 public:
  /// `place` is for messages; both are used until take().
  Turns(const RecordOptions& options, const std::string& place)
      : options_(options), place_(place) {}

  /// Appends the turns of a list, which the record has under `key`. Unless `learned`, its answers
  /// are not learned. Throws Error{input} that names the turn.
  void add_list(nlohmann::ordered_json list, std::string_view key, bool learned = true);
  /// Appends a list, one turn, or a text of `role`.
  void add_any(nlohmann::ordered_json value,
               std::string_view key,
               std::string_view role,
               bool learned = true);
  void add(std::string_view role, std::string text);
  /// Puts a system message before all turns, unless the first turn repeats it. Throws Error{input}
  /// if that is another system message.
  void put_system(const std::string& text, std::string_view key);
  [[nodiscard]] Conversation take() { return std::move(conversation_); }

 private:
  using Json = nlohmann::ordered_json;

  void add_turn(Json& turn, const std::string& name, bool learned);
  bool add_round(Json& turn, const std::string& name, bool learned);
  void push(Json message, bool learned);
  std::string role_of(const std::string& name, const std::string& turn) const;

  const RecordOptions& options_;
  const std::string& place_;
  Conversation conversation_;
};

}  // namespace dstrain::data
