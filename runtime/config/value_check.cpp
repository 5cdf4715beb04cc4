#include "runtime/config/value_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/number.h"
#include "runtime/base/suggest.h"
#include "runtime/config/choice.h"
#include "runtime/config/native_types.h"

namespace dstrain::config {
namespace {

using Kind = JsonValue::Kind;

/// DeepSpeed drops "auto" in these sections: the default applies.
constexpr std::array<std::string_view, 13> lenient_sections{"zero_optimization",
                                                            "fp16",
                                                            "bf16",
                                                            "tensorboard",
                                                            "wandb",
                                                            "csv_monitor",
                                                            "comet",
                                                            "comms_logger",
                                                            "hybrid_engine",
                                                            "compile",
                                                            "timers",
                                                            "tensor_parallel",
                                                            "weight_quantization"};

bool takes_auto(const Key& key) {
  if (key.automatic) return true;
  const std::string_view top = key.path.substr(0, key.path.find('.'));
  return top != key.path &&
         std::find(lenient_sections.begin(), lenient_sections.end(), top) != lenient_sections.end();
}

std::string_view type_name(KeyType type) {
  switch (type) {
    case KeyType::section:
      return "an object";
    case KeyType::boolean:
      return "true or false";
    case KeyType::integer:
      return "a whole number";
    case KeyType::number:
      return "a number";
    case KeyType::text:
      return "a string";
    case KeyType::list:
      return "a list";
    case KeyType::any:
      return "a value";
  }
  return {};
}

bool has_type(const JsonValue& value, KeyType type) {
  switch (type) {
    case KeyType::section:
      return value.is(Kind::object);
    case KeyType::boolean:
      return value.is(Kind::boolean);
    case KeyType::integer:
      return value.integer.has_value();
    case KeyType::number:
      return value.is(Kind::number);
    case KeyType::text:
      return value.is(Kind::string);
    case KeyType::list:
      return value.is(Kind::array);
    case KeyType::any:
      return true;
  }
  return false;
}

/// Returns the keys that an enabled section requires.
std::string_view required_keys(const Key& section) {
  if (section.path == "torch_autocast") return R"(, "dtype": "bfloat16")";
  if (section.path != "elasticity") return {};
  return R"(, "max_train_batch_size": 2000, "micro_batch_sizes": [2, 4, 6])";
}

/// Suggests what to write instead of true or false as a section.
std::string instead_of_truth(const Key& key, bool truth) {
  const auto inner = [&](const char* name) {
    return find_key(fmt::format("{}.{}", key.path, name));
  };
  const Key* const enabled = inner("enabled");
  if (inner("device") != nullptr) return truth ? R"(; write {"device": "cpu"})" : "; leave it out";
  if (key.path == "activation_checkpointing") {
    return truth ? "; use --gradient_checkpointing" : "; leave it out";
  }
  const Key& feature = enabled == nullptr ? key : *enabled;
  if (truth && feature.status == KeyStatus::off_only) {
    return fmt::format("; {} is not implemented; leave it out", feature.note);
  }
  if (enabled != nullptr) {
    return fmt::format("; write {{\"enabled\": {}{}}}", truth, truth ? required_keys(key) : "");
  }
  return truth ? "" : "; leave it out";
}

/// Returns the ZeRO stage that a number or word means: 2, "2", "zero2" or "stage_2"; -1: none.
int stage_of(const std::string& word) {
  const std::size_t digit = word.find_last_not_of("0123");
  const std::string name = lower_case(word.substr(0, digit == word.npos ? 0 : digit + 1));
  constexpr std::array<std::string_view, 7> names{"",      "zero",   "zero-", "zero_",
                                                  "stage", "stage_", "stage-"};
  const bool named = std::ranges::find(names, name) != names.end();
  return named && word.size() == name.size() + 1 ? word.back() - '0' : -1;
}

/// Suggests what to write instead of a word or a number as a section.
std::string instead_of_section(const Key& key, const JsonValue& value) {
  const std::string& word = value.text;
  if (key.path == "zero_optimization" && stage_of(word) >= 0) {
    return fmt::format("; write {{\"stage\": {}}}", stage_of(word));
  }
  if (!value.is(Kind::string)) {
    const bool truth = value.integer == 1;
    return truth || value.integer == 0 ? instead_of_truth(key, truth) : "";
  }
  if (key.path == "optimizer" || key.path == "scheduler") return instead_of_type(key.path, word);
  const std::string small = lower_case(word);
  if (small == "true" || small == "false") return instead_of_truth(key, small == "true");
  const Key* const enabled = find_key(fmt::format("{}.enabled", key.path));
  if (small == "auto") {
    return enabled != nullptr && enabled->automatic ? R"(; write {"enabled": "auto"})"
                                                    : "; leave it out";
  }
  const Key* const device = find_key(fmt::format("{}.device", key.path));
  if (device == nullptr || spelled_word(word, split_choices(device->choices)).empty()) return {};
  return fmt::format("; write {{\"device\": \"{}\"{}}}", word,
                     small == "nvme" ? R"(, "nvme_path": "DIR")" : "");
}

/// Suggests what to write instead of a value of the wrong type: a boolean or word as a section, a
/// quoted number or boolean, null. Empty if none of these is the mistake.
std::string instead(const JsonValue& value, const Key& key) {
  const KeyType type = key.type;
  if (value.is(Kind::null)) {
    return key.path == "gradient_clipping" ? "; write 0, which never clips" : "; leave it out";
  }
  if (type == KeyType::section && value.is(Kind::boolean)) {
    return instead_of_truth(key, value.boolean);
  }
  if (type == KeyType::section && (value.is(Kind::string) || value.is(Kind::number))) {
    return instead_of_section(key, value);
  }
  if (type == KeyType::section && value.is(Kind::array) && value.elements.size() == 1) {
    const JsonValue& only = value.elements.front();
    return only.is(Kind::object) ? "; without the brackets" : instead_of_section(key, only);
  }
  if (!value.is(Kind::string)) return {};
  const bool numbers = value.text.find_first_not_of("0123456789.e-, ") == std::string::npos;
  if (type == KeyType::list && numbers) return fmt::format("; write [{}]", value.text);
  if (key.path == "fp16.loss_scale" && lower_case(value.text) == "dynamic") {
    return "; write 0: the scale is then dynamic";
  }
  const std::optional<double> number = parse_number<double>(value.text);
  if (number && !std::isfinite(*number)) {
    return key.path == "gradient_clipping" ? "; write 0, which never clips"
                                           : "; write a finite number";
  }
  const bool numeric = number.has_value();
  const bool wants_number = type == KeyType::integer || type == KeyType::number;
  const std::string small = lower_case(value.text);
  const bool logical = small == "true" || small == "false";
  const bool quoted =
      (numeric && wants_number && *number >= key.minimum && *number <= key.maximum) ||
      (logical && type == KeyType::boolean);
  if (quoted) return fmt::format("; without the quotes: {}", numeric ? value.text : small);
  const bool has_unit =
      wants_number && !value.text.empty() && value.text[0] >= '0' && value.text[0] <= '9';
  return has_unit ? "; write a number without a unit" : "";
}

std::string choice_list(std::string_view choices) {
  std::string text;
  for (const std::string_view choice : split_choices(choices)) {
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", choice);
  }
  return text;
}

/// Formats the "off" values as JSON: strings quoted, others bare.
std::string off_list(const Key& key) {
  std::string text;
  for (const std::string_view choice : split_choices(key.off)) {
    const bool bare = key.type != KeyType::text || choice == "null";
    text += fmt::format("{}{}{}{}", text.empty() ? "" : " or ", bare ? "" : "\"", choice,
                        bare ? "" : "\"");
  }
  return text;
}

bool check_type(const Key& key,
                const JsonValue& value,
                const std::string& path,
                Problems& problems) {
  if (has_type(value, key.type)) return true;
  // Keys that DeepSpeed only tests for truth may also be false if they may be unset.
  const bool unset = value.is(Kind::null) || (value.is(Kind::boolean) && !value.boolean &&
                                              key.status != KeyStatus::implemented);
  if (unset && (key.fallback == "null" || is_one_of(value, key.off))) return false;
  if (value.is_text("auto") && key.type != KeyType::section) {
    problems.add(value.position, path, "\"auto\" has no meaning here; give a value");
    return false;
  }
  problems.add(value.position, path,
               fmt::format("expected {}, got {}{}", type_name(key.type), to_text(value),
                           instead(value, key)));
  return false;
}

bool check_range(const Key& key,
                 const JsonValue& value,
                 const std::string& path,
                 Problems& problems) {
  if (!value.is(Kind::number) || (value.number >= key.minimum && value.number <= key.maximum)) {
    return true;
  }
  const std::string range = std::isinf(key.maximum)
                                ? fmt::format("at least {}", key.minimum)
                                : fmt::format("between {} and {}", key.minimum, key.maximum);
  problems.add(value.position, path, fmt::format("must be {}, got {}", range, to_text(value)));
  return false;
}

bool check_choice(const Key& key,
                  const JsonValue& value,
                  const std::string& path,
                  Problems& problems) {
  if (!value.is(Kind::string) || key.choices.empty() || is_one_of(value, key.choices)) return true;
  const bool off_only = key.status == KeyStatus::off_only;
  const std::vector<std::string_view> taken = split_choices(off_only ? key.off : key.choices);
  const std::string likely = suggest(value.text, taken);
  problems.add(value.position, path,
               fmt::format("must be one of {}, got {}{}", choice_list(key.choices), to_text(value),
                           likely.empty() ? "" : fmt::format("; did you mean \"{}\"?", likely)));
  return false;
}

void check_status(const Key& key,
                  const JsonValue& value,
                  const std::string& path,
                  Problems& problems) {
  if (key.status == KeyStatus::hint && (key.off.empty() || !is_one_of(value, key.off))) {
    problems.warn(value.position, path, fmt::format("has no effect: {}", key.note));
  }
  if (key.status != KeyStatus::off_only || is_one_of(value, key.off) || value.is_text("auto"))
    return;
  problems.add(value.position, path,
               fmt::format("{}: {} is not implemented; leave it out or set it to {}",
                           to_text(value), key.note, off_list(key)));
}

bool is_choice(const JsonValue& value, std::string_view choice) {
  if (choice == "null") return value.is(Kind::null);
  if (choice == "true" || choice == "false") {
    return value.is(Kind::boolean) && value.boolean == (choice == "true");
  }
  const std::optional<double> number = parse_number<double>(choice);
  return number ? value.is(Kind::number) && value.number == *number : value.is_text(choice);
}

}  // namespace

bool is_one_of(const JsonValue& value, std::string_view choices) {
  const std::vector<std::string_view> all = split_choices(choices);
  return std::any_of(all.begin(), all.end(),
                     [&](std::string_view choice) { return is_choice(value, choice); });
}

void check_value(const Key& key,
                 const JsonValue& value,
                 const std::string& path,
                 Problems& problems) {
  if (key.status == KeyStatus::refused) {
    problems.add(value.position, path, key.note);
  } else if (key.status == KeyStatus::unread) {
    problems.warn(value.position, path, fmt::format("has no effect: {}", key.note));
  } else if (key.type != KeyType::boolean && is_one_of(value, key.off)) {
    return;  // off may be written in another type: "sparse_attention": false
  } else if ((value.is_text("auto") && takes_auto(key)) ||
             (check_type(key, value, path, problems) && check_range(key, value, path, problems) &&
              check_choice(key, value, path, problems))) {
    check_status(key, value, path, problems);
  }
}

}  // namespace dstrain::config
