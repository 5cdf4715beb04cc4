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

/// Of a size, a rate, a flag, and of what is only compared, by its text. A choice is the size of
/// its enumerator.
using ConfigValue = std::variant<std::int64_t, float, bool, std::string>;

/// How the value of a field is read and written, of configurations of one class.
struct ConfigAccess {
  enum class Kind : std::int8_t { size, rate, flag, choice, text };
  Kind kind = Kind::size;
  ConfigValue (*get)(const ModelConfig&) = nullptr;
  void (*set)(ModelConfig&, const ConfigValue&) = nullptr;  ///< null of a text
};

/// A name that config.json has for an enumerator; several may mean the same, of which the first is
/// the one that is written.
struct ChoiceName {
  std::string_view name;
  std::int64_t value = 0;
};

/// A key of config.json and the member that holds its value: parsing, overriding, checking,
/// comparing and writing all go by the table of these that a family has.
struct ConfigField {
  std::string_view name;
  ConfigAccess access;
  std::int64_t max = 0;  ///< sizes are min ... max, rates in [0, max); far above any model, low
                         ///< enough that no product overflows
  std::int64_t min = 1;
  std::string_view alias{};               ///< another name that Hugging Face accepts too
  std::string_view mirror{};              ///< a key that says the same, and is never read
  std::span<const ChoiceName> choices{};  ///< of a choice
  /// What the value is where null stands for it, or where it is absent; a size that is not 0 by
  /// default keeps that. While a value is what is derived, it follows when overrides change others.
  ConfigValue (*derived)(const ModelConfig&) = nullptr;
  bool null_when_derived = false;  ///< and is written so
  bool null_is_zero = false;
  bool trains_only = false;  ///< the model computes the same function with any other value
};

/// What a key must say for the numbers to be those that are built; absent means `built`. As JSON.
struct FixedOption {
  std::string_view key;
  std::string_view built;
  std::string_view same{};  ///< another value that means the same
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

/// Of a member: access_to<&Gpt2Config::n_layer>.
template <auto member>
inline constexpr ConfigAccess access_to =
    detail::access_of(typename detail::PointerToMember<decltype(member)>::template Type<member>());

/// "vocab_size, n_positions, ...": what overrides can name.
std::string field_names(std::span<const ConfigField> fields);

/// A value as overrides and messages have it.
std::string text_of(const ConfigField& field, const ConfigValue& value);

/// "silu", "gelu" and "relu".
std::string quoted_list(std::span<const std::string_view> names);
std::string choice_list(const ConfigField& field);

/// Of one of the names of a choice, or -1.
std::int64_t choice_named(const ConfigField& field, std::string_view name);

/// Sets the value that an override has. Throws Error{usage}, which begins with `item`.
void set_from_text(ModelConfig& config,
                   const ConfigField& field,
                   std::string_view value,
                   std::string_view item);

/// Whether a value is what follows from others.
bool is_derived(const ModelConfig& config, const ConfigField& field);

/// The shortest decimal that reads back as the same float, so that 1e-5F is written 1e-05.
double shortest_decimal(float value);

/// One line per size or rate that is out of its range.
std::vector<std::string> range_problems(const ModelConfig& config);

}  // namespace dstrain::model
