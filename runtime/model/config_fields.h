#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "runtime/model/model_config.h"

namespace dstrain::model {

/// The value of a size, a rate or a flag, or the text of a field that is only compared. A choice is
/// the number of its enumerator.
using ConfigValue = std::variant<std::int64_t, float, bool, std::string>;

/// Reads and writes a field of configurations of one class.
struct ConfigAccess {
  enum class Kind : std::int8_t { size, rate, flag, choice, text };
  Kind kind = Kind::size;
  ConfigValue (*get)(const ModelConfig&) = nullptr;
  void (*set)(ModelConfig&, const ConfigValue&) = nullptr;  ///< null for texts
};

/// A name of an enumerator in config.json. If several names mean the same, the first one is
/// written.
struct ChoiceName {
  std::string_view name;
  std::int64_t value = 0;
};

/// A key of config.json and the member with its value. Each family has a table of these, which
/// parsing, overriding, checking, comparing and writing use.
struct ConfigField {
  std::string_view name;
  ConfigAccess access;
  std::int64_t max = 0;  ///< range of sizes: min ... max, of rates: [0, max); above any model, but
                         ///< low enough that no product overflows
  std::int64_t min = 1;
  std::string_view alias{};               ///< another name that Hugging Face accepts
  std::string_view mirror{};              ///< a key with the same value that is never read
  std::span<const ChoiceName> choices{};  ///< names of a choice
  /// Returns the value if null stands for it or the key is absent; a size whose default is not 0
  /// keeps that. While a value equals the derived one, it follows overrides of other fields.
  ConfigValue (*derived)(const ModelConfig&) = nullptr;
  bool null_when_derived = false;  ///< null is written for a derived value
  bool null_is_zero = false;
  bool trains_only = false;  ///< the value does not change the function of the model
};

/// A key that must have the value `built`, or be absent, because the code supports no other. As
/// JSON.
struct FixedOption {
  std::string_view key;
  std::string_view built;
  std::string_view same{};  ///< another value with the same meaning
};

namespace detail {

template <class Value>
constexpr ConfigAccess::Kind kind_of() {
  if (std::is_same_v<Value, float>) return ConfigAccess::Kind::rate;
  if (std::is_same_v<Value, bool>) return ConfigAccess::Kind::flag;
  return std::is_enum_v<Value> ? ConfigAccess::Kind::choice : ConfigAccess::Kind::size;
}

template <class Config, class Value, Value Config::*member>
struct Member {
  using Stored = std::conditional_t<std::is_enum_v<Value>, std::int64_t, Value>;
  static ConfigValue get(const ModelConfig& config) {
    return static_cast<Stored>(static_cast<const Config&>(config).*member);
  }
  static void set(ModelConfig& config, const ConfigValue& value) {
    static_cast<Config&>(config).*member = static_cast<Value>(std::get<Stored>(value));
  }
};

template <class Config, class Value, Value Config::*member>
constexpr ConfigAccess access_of(Member<Config, Value, member> /*type*/) {
  using Type = Member<Config, Value, member>;
  return {kind_of<Value>(), Type::get, Type::set};
}

template <class>
struct PointerToMember;
template <class Config, class Value>
struct PointerToMember<Value Config::*> {
  template <Value Config::*member>
  using Type = Member<Config, Value, member>;
};

}  // namespace detail

/// Accesses a member: access_to<&Gpt2Config::n_layer>.
template <auto member>
inline constexpr ConfigAccess access_to =
    detail::access_of(typename detail::PointerToMember<decltype(member)>::template Type<member>());

/// The names for overrides: vocab_size, n_positions, ...
std::vector<std::string_view> field_names(std::span<const ConfigField> fields);

/// Returns a value as in overrides and messages.
std::string text_of(const ConfigField& field, const ConfigValue& value);

/// Returns "silu", "gelu" and "relu".
std::string quoted_list(std::span<const std::string_view> names);
std::string choice_list(const ConfigField& field);

/// Returns the enumerator of a name of a choice, or -1.
std::int64_t choice_named(const ConfigField& field, std::string_view name);

/// Sets the value from an override. Throws Error{usage}, which begins with `item`.
void set_from_text(ModelConfig& config,
                   const ConfigField& field,
                   std::string_view value,
                   std::string_view item);

/// Whether the value of a field is the one derived from others.
bool is_derived(const ModelConfig& config, const ConfigField& field);

/// Returns the shortest decimal that reads back as the same float, so that 1e-5F is written 1e-05.
double shortest_decimal(float value);

/// Returns one line for each size or rate that is out of its range.
std::vector<std::string> range_problems(const ModelConfig& config);

}  // namespace dstrain::model
