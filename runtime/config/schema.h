#pragma once
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace dstrain::config {

enum class KeyType { section, boolean, integer, number, text, list, any };

/// What dstrain does with a key.
enum class KeyStatus {
  implemented,
  hint,      ///< valid, but dstrain works differently: one warning, with the note
  off_only,  ///< the feature (in the note) is not built: only values that turn it off are accepted
  inert,     ///< a detail of a feature that is off: only its type is checked
  unread,    ///< DeepSpeed itself never reads it: one warning, with the note
  refused,   ///< an error, with the note
};

/// One key of the configuration. Values are written as JSON, but strings without quotes.
struct Key {
  std::string_view path;  ///< "zero_optimization.stage"
  KeyType type = KeyType::any;
  std::string_view fallback = {};  ///< DeepSpeed's default; empty: none
  KeyStatus status = KeyStatus::inert;
  std::string_view note = {};
  std::string_view off = {};       ///< "none|null": values that turn the feature off
  std::string_view choices = {};   ///< "log|linear": the allowed strings; empty: any
  std::string_view synonyms = {};  ///< "float32:fp32": words that DeepSpeed accepts for a choice
  bool any_case = false;           ///< DeepSpeed too ignores the case of strings
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool automatic = false;  ///< "auto" is allowed
  bool open = false;       ///< a section whose keys are not all listed here

  // These functions build the rows of the tables.
  constexpr Key range(double low, double high) const {
    Key key = *this;
    key.minimum = low;
    key.maximum = high;
    return key;
  }
  constexpr Key at_least(double low) const { return range(low, maximum); }
  constexpr Key one_of(std::string_view texts) const {
    Key key = *this;
    key.choices = texts;
    return key;
  }
  constexpr Key synonymous(std::string_view pairs) const {
    Key key = *this;
    key.synonyms = pairs;
    return key;
  }
  constexpr Key in_any_case() const {
    Key key = *this;
    key.any_case = true;
    return key;
  }
  /// For a hint: these values need no warning.
  constexpr Key silent_at(std::string_view values) const {
    Key key = *this;
    key.off = values;
    return key;
  }
  constexpr Key or_auto() const {
    Key key = *this;
    key.automatic = true;
    return key;
  }
  constexpr Key or_more() const {
    Key key = *this;
    key.open = true;
    return key;
  }
};

/// `fallback`: "null" if the section may be null, which equals absent.
constexpr Key group(std::string_view path, std::string_view fallback = {}) {
  return {.path = path,
          .type = KeyType::section,
          .fallback = fallback,
          .status = KeyStatus::implemented};
}
constexpr Key implemented(std::string_view path, KeyType type, std::string_view fallback) {
  return {.path = path, .type = type, .fallback = fallback, .status = KeyStatus::implemented};
}
constexpr Key hint(std::string_view path,
                   KeyType type,
                   std::string_view fallback,
                   std::string_view note) {
  return {
      .path = path, .type = type, .fallback = fallback, .status = KeyStatus::hint, .note = note};
}
constexpr Key off_only(std::string_view path,
                       KeyType type,
                       std::string_view off,
                       std::string_view feature) {
  const std::string_view first = off.substr(0, off.find('|'));
  return {.path = path,
          .type = type,
          .fallback = first,
          .status = KeyStatus::off_only,
          .note = feature,
          .off = off};
}
constexpr Key inert(std::string_view path, KeyType type, std::string_view fallback) {
  return {.path = path, .type = type, .fallback = fallback, .status = KeyStatus::inert};
}
constexpr Key unread(std::string_view path, std::string_view note) {
  return {.path = path, .type = KeyType::any, .status = KeyStatus::unread, .note = note};
}
constexpr Key refused(std::string_view path, std::string_view note) {
  return {.path = path, .type = KeyType::any, .status = KeyStatus::refused, .note = note};
}

/// Another spelling of a key or a section.
struct Alias {
  std::string_view path;
  std::string_view canonical;
  std::string_view warning;  ///< empty: equal to the canonical one
};

/// Two keys that exclude each other because one replaces the other.
struct Replaced {
  std::string_view deprecated;
  std::string_view by;
};

// The tables, one file per group of sections.
std::span<const Key> top_level_keys();
std::span<const Key> zero_keys();
std::span<const Key> offload_keys();
std::span<const Key> optimizer_keys();
std::span<const Key> precision_keys();
std::span<const Key> monitor_keys();
std::span<const Key> runtime_keys();
std::span<const Key> data_keys();
std::span<const Alias> aliases();
std::span<const Replaced> replacements();

/// Every key of every table.
const std::vector<Key>& all_keys();
/// Returns the key at a canonical path; null if there is none.
const Key* find_key(std::string_view path);
const Alias* find_alias(std::string_view path);
/// Returns the names of the keys directly in the section `prefix` (empty: the top level), including
/// aliases.
std::vector<std::string_view> names_in(std::string_view prefix);
/// Returns the sections (by path, "" for the top level) that have a key or alias `name`. `details`
/// includes sections in which it is a detail of a feature that is not built.
enum class Homes { useful, details };
std::vector<std::string_view> homes_of(std::string_view name, Homes which);
/// Returns the unbuilt feature that a key is a detail of; empty: none, or unknown.
std::string_view unbuilt_feature(const Key& key);
/// "a|b|c" -> a, b, c.
std::vector<std::string_view> split_choices(std::string_view choices);

}  // namespace dstrain::config
