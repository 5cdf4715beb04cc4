#include "runtime/config/flag_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/number.h"
#include "runtime/base/shell_word.h"
#include "runtime/base/suggest.h"
#include "runtime/config/choice.h"
#include "runtime/config/schema.h"

namespace dstrain::config {
namespace {

using Lines = std::vector<std::string>;

/// Python accepts "20_000" for 20000.
std::string without_separators(std::string_view text) {
  const auto is_digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_' && i > 0 && is_digit(i - 1) && is_digit(i + 1)) continue;
    digits += text[i];
  }
  return digits;
}

bool is_number(std::string_view text, double& number) {
  const std::optional<double> parsed = parse_number<double>(without_separators(text));
  if (parsed) number = *parsed;
  return parsed && std::isfinite(*parsed);
}

/// Returns nothing if the word is neither. A bare option has the empty word, which means true.
std::optional<bool> parse_boolean(const std::string& text) {
  const std::string word = lower_case(text);
  const auto is = [&](std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (is({"", "1", "true", "t", "yes", "y", "on"})) return true;
  if (is({"0", "false", "f", "no", "n", "off"})) return false;
  return std::nullopt;
}

/// Whether `text` is an object that has only values of `defaults`.
bool has_defaults(std::string_view defaults, const std::string& text) {
  const auto object = nlohmann::json::parse(text, nullptr, false);
  const auto known = nlohmann::json::parse(defaults);
  return object.is_object() && std::ranges::all_of(object.items(), [&](const auto& item) {
           return known.contains(item.key()) && known[item.key()] == item.value();
         });
}

class FlagReader {
 public:
  FlagReader(TrainOptions& options, Lines& problems) : options_(options), problems_(problems) {}

  void read(const FlagRow& row, const std::string& typed_as, std::span<const std::string> words) {
    if (row.takes_files()) return read_files(row, typed_as, words);
    const std::string text = row.several ? fmt::format("{}", fmt::join(words, " ")) : words.back();
    const std::size_t before = problems_.size();
    if (text.starts_with("--")) {  // the next option, mistaken for the value
      problems_.push_back(fmt::format("{}: needs a value", typed_as));
      return;
    }
    if (is_unset(row, text)) return;
    const std::string word = canonical(row, typed_as, text);
    if (problems_.size() > before) return;
    std::visit([&](auto target) { store(row, target, typed_as, word); }, row.target);
    if (problems_.size() == before) report(row, typed_as, word);
  }

 private:
  void read_files(const FlagRow& row,
                  const std::string& typed_as,
                  std::span<const std::string> words) {
    if (words.front().starts_with("--")) {
      problems_.push_back(fmt::format("{}: needs a value", typed_as));
      return;
    }
    auto& flag = options_.*std::get<Flag<std::vector<DataFile>> TrainOptions::*>(row.target);
    flag = {{}, typed_as};
    Result<std::vector<DataFile>> files = parse_data_files(words);
    if (files.ok()) {
      flag.value = std::move(files.value());
    } else {
      problems_.push_back(fmt::format("{}: {}", typed_as, files.error()));
    }
  }

  /// Whether an option without effect here has Python's or YAML's word for an unset value.
  static bool is_unset(const FlagRow& row, const std::string& text) {
    if (row.status == FlagStatus::implemented) return false;
    const bool states_name =
        row.status == FlagStatus::stated && !row.boolean() && row.value != "N" && row.value != "X";
    if (states_name) return false;
    constexpr std::array<std::string_view, 4> words{"none", "null", "[]", "{}"};
    return std::ranges::find(words, lower_case(text)) != words.end();
  }

  /// Returns the word of row.choices that `text` spells.
  std::string canonical(const FlagRow& row, const std::string& typed_as, const std::string& text) {
    if (row.choices.empty()) return text;
    const auto choices = split_choices(row.choices);
    const std::string_view choice = spelled_word(text, choices);
    if (!choice.empty()) return std::string(choice);
    const std::string likely = suggest(text, choices);
    problems_.push_back(
        row.others_unbuilt
            ? fmt::format("{} {}: not implemented; leave it out or set it to {}{}", typed_as, text,
                          fmt::join(choices, " or "), row.others)
            : fmt::format("{}: must be {}, got \"{}\"{}", typed_as, fmt::join(choices, " or "),
                          text, likely.empty() ? "" : fmt::format("; did you mean {}?", likely)));
    return {};
  }

  template <class T>
  void store(const FlagRow& row,
             Flag<T> TrainOptions::*target,
             const std::string& typed_as,
             const std::string& text) {
    store(row, options_.*target, typed_as, text);
  }

  void store(const FlagRow& /*row*/,
             Flag<std::vector<DataFile>>& /*flag*/,
             const std::string& /*typed_as*/,
             const std::string& /*text*/) {
    DSTRAIN_CHECK(false, "files are read from several words");
  }

  /// Only checks the value.
  void store(const FlagRow& row,
             std::monostate /*target*/,
             const std::string& typed_as,
             const std::string& text) {
    Flag<bool> truth;
    if (row.boolean()) store(row, truth, typed_as, text);
    if (row.status != FlagStatus::stated) return;
    double number = 0;
    const bool numeric = row.value == "N" || row.value == "X";
    if (numeric && !parse_number(typed_as, text, "a number", number)) return;
    if (row.boolean() && !truth.typed()) return;
    const std::string value = row.boolean() ? (truth.value ? "true" : "false") : text;
    options_.statements.push_back({std::string(row.name), typed_as, value});
  }

  void store(const FlagRow& row,
             Flag<std::string>& flag,
             const std::string& typed_as,
             const std::string& text) {
    if (text.empty() && !row.value_optional) {
      problems_.push_back(fmt::format("{}: needs a value", typed_as));
    }
    flag = {text, typed_as};
  }

  void store(const FlagRow& row,
             Flag<std::int64_t>& flag,
             const std::string& typed_as,
             const std::string& text) {
    double number = 0;
    if (!parse_number(typed_as, text, "a whole number", number)) return;
    constexpr double largest = 9e15;  // larger ones may be inexact
    if (number != std::trunc(number) || std::abs(number) > largest) {
      problems_.push_back(fmt::format("{}: expected a whole number, got {}", typed_as, text));
    } else if (in_range(row, number, typed_as, text)) {
      flag = {static_cast<std::int64_t>(number), typed_as};
    }
  }

  void store(const FlagRow& row,
             Flag<double>& flag,
             const std::string& typed_as,
             const std::string& text) {
    double number = 0;
    if (!row.strategy.empty() && lower_case(text) == "epoch") {
      problems_.push_back(fmt::format("{} {}: use --{} epoch", typed_as, text, row.strategy));
      return;
    }
    if (!parse_number(typed_as, text, "a number", number)) {
      const bool infinite = row.name == "max_grad_norm" && lower_case(text).find("inf") == 0;
      if (infinite) problems_.back() += "; 0 never clips";
      return;
    }
    if (row.never && number == -1) number = 0;
    if (row.whole_from_one && number >= 1 && number != std::trunc(number)) {
      problems_.push_back(
          fmt::format("{}: must be a whole number, or below 1 a fraction of all steps, got {}",
                      typed_as, text));
    } else if (in_range(row, number, typed_as, text)) {
      flag = {number, typed_as};
    }
  }

  void store(const FlagRow& /*row*/,
             Flag<bool>& flag,
             const std::string& typed_as,
             const std::string& text) {
    const std::optional<bool> value = parse_boolean(text);
    if (value) {
      flag = {*value, typed_as};
    } else {
      problems_.push_back(fmt::format("{}: expected true or false, got \"{}\"", typed_as, text));
    }
  }

  /// Whether `text` needs no message: it asks for nothing.
  static bool asks_for_nothing(const FlagRow& row, const std::string& text) {
    if (!row.defaults.empty() && has_defaults(row.defaults, text)) return true;
    double number = 0;
    double other = 0;
    for (const std::string_view off : split_choices(row.off)) {
      if (lower_case(text) == lower_case(off)) return true;
      if (row.boolean() && parse_boolean(text) == (off == "true")) return true;
      if (is_number(text, number) && is_number(off, other) && number == other) return true;
    }
    return false;
  }

  /// Whether a remedy names an option that was typed already.
  bool names_typed_option(std::string_view remedy) const {
    const auto names = [&](std::string_view name) {
      const std::size_t at = remedy.find(fmt::format("--{}", name));
      const std::string_view rest = at == remedy.npos ? "_" : remedy.substr(at + 2 + name.size());
      return rest.empty() || (rest[0] != '_' && (rest[0] < 'a' || rest[0] > 'z'));
    };
    const auto typed = [&](auto target) {
      return is_typed(target);
    };
    return remedy.find("leave it out") == remedy.npos &&
           std::ranges::any_of(implemented_flags(), [&](const FlagRow& row) {
             return names(row.name) && std::visit(typed, row.target);
           });
  }

  template <class T>
  bool is_typed(Flag<T> TrainOptions::*target) const {
    return (options_.*target).typed();
  }
  static bool is_typed(std::monostate /*target*/) { return false; }

  /// Reports why an option has no effect or is refused.
  void report(const FlagRow& row, const std::string& typed_as, const std::string& text) {
    if (row.status == FlagStatus::implemented || row.status == FlagStatus::stated) return;
    if (asks_for_nothing(row, text)) return;
    if (row.status == FlagStatus::hint) {
      options_.warnings.push_back(fmt::format("{}: has no effect: {}", typed_as, row.help));
      return;
    }
    const std::string why = row.told == nullptr ? std::string(row.help) : row.told(text, options_);
    const bool negated = typed_as == fmt::format("--no_{}", row.name);
    const bool bare = text.empty() || negated;
    const bool in_place = row.leave_out || names_typed_option(why);
    const std::string end =
        !row.off.empty()
            ? fmt::format("leave it out or set it to {}", fmt::join(split_choices(row.off), " or "))
        : in_place ? "leave it out"
                   : "";
    const bool with_command = why.find(before_command) != why.npos;  // a command ends the message
    const std::string whole = end.empty()    ? why
                              : with_command ? fmt::format("{}, and {}", end, why)
                                             : fmt::format("{}; {}", why, end);
    problems_.push_back(
        fmt::format("{}{}{}: {}", typed_as, bare ? "" : " ", bare ? "" : text, whole));
  }

  bool parse_number(const std::string& typed_as,
                    const std::string& text,
                    std::string_view wanted,
                    double& number) {
    if (is_number(text, number)) return true;
    problems_.push_back(fmt::format("{}: expected {}, got \"{}\"", typed_as, wanted, text));
    return false;
  }

  bool in_range(const FlagRow& row,
                double number,
                const std::string& typed_as,
                const std::string& text) {
    if (number >= row.minimum && number <= row.maximum) return true;
    const std::string range =
        std::isinf(row.maximum)
            ? fmt::format("at least {}", row.minimum)
            : fmt::format("between {} and {}", row.minimum, std::round(row.maximum));
    const bool may_mean_epochs = !row.strategy.empty() && number == -1;  // as in OpenRLHF
    problems_.push_back(fmt::format(
        "{}: must be {}, got {}{}", typed_as, range, text,
        may_mean_epochs ? fmt::format("; once an epoch is --{} epoch", row.strategy) : ""));
    return false;
  }

  TrainOptions& options_;
  Lines& problems_;
};

}  // namespace

bool is_boolean(const std::string& word) {
  return parse_boolean(word).has_value();
}

bool same_value(const FlagRow& row, const std::string& first, const std::string& second) {
  if (first == second) return true;
  if (row.boolean()) {
    const std::optional<bool> truth = parse_boolean(first);
    return truth && truth == parse_boolean(second);
  }
  double number = 0;
  double other = 0;
  const bool numeric = std::holds_alternative<Flag<std::int64_t> TrainOptions::*>(row.target) ||
                       std::holds_alternative<Flag<double> TrainOptions::*>(row.target);
  if (numeric) return is_number(first, number) && is_number(second, other) && number == other;
  const auto choices = split_choices(row.choices);
  const std::string_view choice = spelled_word(first, choices);
  return !choice.empty() && choice == spelled_word(second, choices);
}

void read_flag(const FlagRow& row,
               const std::string& typed_as,
               std::span<const std::string> words,
               TrainOptions& options,
               std::vector<std::string>& problems) {
  FlagReader(options, problems).read(row, typed_as, words);
}

}  // namespace dstrain::config
