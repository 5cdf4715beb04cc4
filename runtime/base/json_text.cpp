#include "runtime/base/json_text.h"

#include <array>
#include <cstddef>
#include <functional>
#include <unordered_set>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/exception_text.h"

namespace dstrain {
namespace {

constexpr int depth_max = 32;

/// A parser callback that refuses duplicate keys, of which nlohmann/json silently keeps the last.
class Watcher {
 public:
  explicit Watcher(const std::string& file) : file_(file) {}

  bool operator()(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (depth > depth_max) fail(ErrorCode::input, "{}: nested deeper than {}", file_, depth_max);
    if (event == Event::object_start) {
      keys_.resize(static_cast<std::size_t>(depth) + 1);
      keys_.back().clear();
    }
    if (event == Event::key) {
      const auto& key = value.get_ref<const std::string&>();
      // A key is one level deeper than the object that holds it.
      if (!keys_.at(static_cast<std::size_t>(depth) - 1).insert(key).second) {
        fail(ErrorCode::input, "{}: the key '{}' appears twice", file_, key);
      }
    }
    return true;
  }

 private:
  const std::string& file_;
  std::vector<std::unordered_set<std::string>> keys_;  ///< seen so far, per depth
};

}  // namespace

std::string nulls_for_python_numbers(std::string_view text) {
  constexpr std::array<std::string_view, 3> words{"NaN", "Infinity", "-Infinity"};
  std::string changed;
  std::size_t copied = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (in_string) {
      if (text[i] == '\\') ++i;
      continue;
    }
    for (const std::string_view word : words) {
      if (!text.substr(i).starts_with(word)) continue;
      changed.append(text.substr(copied, i - copied)).append("null");
      copied = i + word.size();
      i = copied - 1;
      break;
    }
  }
  return changed.empty() ? changed : changed.append(text.substr(copied));
}

nlohmann::json parse_json_object(std::string_view text, const std::string& file) {
  // The parser would stop at a NUL and ignore the rest.
  if (text.find('\0') != std::string_view::npos) {
    fail(ErrorCode::input, "{}: holds a NUL byte; is it JSON?", file);
  }
  try {
    nlohmann::json document = parse_python_json(text, [&](std::string_view json) {
      Watcher watcher(file);
      return nlohmann::json::parse(json.begin(), json.end(), std::ref(watcher));
    });
    if (!document.is_object()) fail(ErrorCode::input, "{}: not a JSON object", file);
    return document;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::input, "{}: {}", file, exception_text(error));
  }
}

}  // namespace dstrain
