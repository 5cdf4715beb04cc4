#include "runtime/config/train_options.h"

#include <algorithm>
#include <span>
#include <type_traits>
#include <unordered_set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"
#include "runtime/base/utf8.h"
#include "runtime/config/flag_reader.h"
#include "runtime/config/schema.h"
#include "runtime/config/suggest.h"
#include "runtime/config/train_flags.h"

namespace dstrain::config {
namespace {

using Lines = std::vector<std::string>;

void raise(const Lines& problems) {
  if (!problems.empty()) fail(ErrorCode::usage, "{}", printable_list(problems));
}

/// --micro-batch-size=4 -> --micro_batch_size=4; values stay as they are.
std::string with_underscores(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const std::size_t end = std::min(argument.find('='), argument.size());
  std::replace(argument.begin() + 2, argument.begin() + static_cast<std::ptrdiff_t>(end), '-', '_');
  return argument;
}

std::vector<std::string_view> names_of(std::span<const FlagRow> flags) {
  std::vector<std::string_view> names;
  for (const FlagRow& row : flags) {
    names.push_back(row.name);
    for (const std::string_view alias : split_choices(row.aliases)) names.push_back(alias);
  }
  return names;
}

/// "--no_bf16" and "--disable_bf16" say "--bf16 false", where --no_bf16 is none of ours.
std::string negated_option(std::string_view word) {
  for (const std::string_view prefix : {"no_", "disable_"}) {
    if (!word.starts_with(prefix)) continue;
    const std::string_view positive = word.substr(prefix.size());
    for (const FlagRow& row : implemented_flags()) {
      if (row.boolean() && row.name == positive) return fmt::format("{} false", positive);
    }
  }
  return {};
}

/// The likely option; of those without effect only one that is merely misspelled.
std::string likely_option(const std::string& word) {
  std::string negated = negated_option(with_underscores("--" + word).substr(2));
  if (!negated.empty()) return negated;
  std::string spelled = suggest_spelling(word, names_of(train_flags()));
  if (!spelled.empty()) return spelled;
  const std::string related = suggest(word, names_of(implemented_flags()));
  return related.empty() && names_held_out_file(word) ? "validation_file" : related;
}

std::string unknown_option(const std::string& name) {
  const std::size_t start = std::min(name.find_first_not_of('-'), name.size());
  const std::string likely = likely_option(name.substr(start));
  return fmt::format("{}: unknown option{}", name,
                     likely.empty() ? std::string("; see dstrain train --help")
                                    : fmt::format("; did you mean --{}?", likely));
}

/// What follows an unknown option may be its value and is left alone.
void report_unknown(const std::vector<std::string>& extras, Lines& problems) {
  bool value_may_follow = false;
  for (const std::string& extra : extras) {
    const bool number = parse_number<double>(extra).has_value();
    const bool option = extra.starts_with("-") && extra != "-" && extra != "--" && !number;
    if (option) {
      problems.push_back(unknown_option(extra.substr(0, extra.find('='))));
    } else if (!value_may_follow) {
      problems.push_back(fmt::format("{}: an argument without an option", extra));
    }
    value_may_follow = option && extra.find('=') == std::string::npos;
  }
}

std::string negation(const FlagRow& row) {
  return fmt::format("--no_{}", row.name);
}

/// The options that the words name: the time in which CLI11 declares options grows with the square
/// of their number.
std::vector<FlagRow> named_in(const Lines& words) {
  std::unordered_set<std::string_view> names;
  for (const std::string& word : words) {
    if (word.starts_with("--")) names.insert(std::string_view(word).substr(2, word.find('=') - 2));
  }
  std::vector<FlagRow> found;
  for (const FlagRow& row : train_flags()) {
    const auto aliases = split_choices(row.aliases);
    const auto is_named = [&](std::string_view name) {
      return names.contains(name);
    };
    const bool negated = row.negatable && is_named(negation(row).substr(2));
    if (negated || is_named(row.name) || std::ranges::any_of(aliases, is_named)) {
      found.push_back(row);
    }
  }
  return found;
}

/// A parser that knows these options under one name each, aliases apart.
void declare(CLI::App& app, std::span<const FlagRow> named) {
  app.set_help_flag();
  app.allow_extras();
  for (const FlagRow& row : named) {
    const bool optional = row.value_optional || row.value.empty();
    const bool takes_all = row.takes_files() || row.several;
    const int most = takes_all ? CLI::detail::expected_max_vector_size : 1;
    const auto policy =
        takes_all ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast;
    const auto add = [&](std::string_view name) {
      app.add_option(fmt::format("--{}", name))
          ->expected(optional ? 0 : 1, most)
          ->allow_extra_args(takes_all)
          ->multi_option_policy(policy);
    };
    add(row.name);
    for (const std::string_view alias : split_choices(row.aliases)) add(alias);
    if (row.negatable) app.add_flag(negation(row));
  }
}

/// Alpaca-LoRA's --batch_size is that of all ranks, beside a --micro_batch_size.
std::string global_batch(const CLI::Option& first, const CLI::Option& second) {
  const bool named =
      first.get_name() == "--batch_size" && second.get_name() == "--micro_batch_size";
  const auto all = parse_number<std::int64_t>(first.results().back());
  const auto micro = parse_number<std::int64_t>(second.results().back());
  if (!named || !all || !micro || *all < *micro) return "keep one";
  return fmt::format(
      "where the first is that of all ranks, write --global_batch_size {} --micro_batch_size {}",
      *all, *micro);
}

/// Two spellings of one option with two values.
void check_spellings(const CLI::App& app, const FlagRow& row, Lines& problems) {
  const CLI::Option& first = *app.get_option(fmt::format("--{}", row.name));
  std::vector<const CLI::Option*> typed;
  if (first.count() > 0) typed.push_back(&first);
  for (const std::string_view alias : split_choices(row.aliases)) {
    const CLI::Option* const option = app.get_option(fmt::format("--{}", alias));
    if (option->count() > 0) typed.push_back(option);
  }
  if (typed.size() < 2 || typed[0]->results() == typed[1]->results()) return;
  const auto words = [&](const CLI::Option& option) {
    return row.takes_files() ? fmt::format("{}", fmt::join(option.results(), " "))
                             : option.results().back();
  };
  problems.push_back(fmt::format("{} {} and {} {} are the same option; {}", typed[0]->get_name(),
                                 words(*typed[0]), typed[1]->get_name(), words(*typed[1]),
                                 global_batch(*typed[0], *typed[1])));
}

/// Files that are given one by one: of other options the last one counts, and to the parser the
/// words of all of them are one list.
void check_repeated_files(const Lines& arguments, std::string_view name, Lines& problems) {
  const std::string option = fmt::format("--{}", name);
  const auto times = std::ranges::count_if(arguments, [&](const std::string& argument) {
    return argument == option || argument.starts_with(option + "=");
  });
  if (times < 2) return;
  problems.push_back(
      fmt::format("{}: is given {} times; give all files to one option, with or without weights: "
                  "{} 0.7 A 0.3 B",
                  option, times, option));
}

void read_negation(const CLI::App& app,
                   const FlagRow& row,
                   TrainOptions& options,
                   Lines& problems) {
  const std::string name = negation(row);
  if (app.get_option(name)->count() == 0) return;
  const CLI::Option& positive = *app.get_option(fmt::format("--{}", row.name));
  if (positive.count() == 0) return read_flag(row, name, Lines{"false"}, options, problems);
  problems.push_back(
      fmt::format("{} and {} are the same option; keep one", positive.get_name(), name));
}

/// The option that a word names, if a value must follow.
const FlagRow* needs_value(const std::string& word) {
  if (!word.starts_with("--")) return nullptr;
  for (const FlagRow& row : train_flags()) {
    if (row.boolean() || row.value_optional) continue;
    if (word.substr(2) == row.name) return &row;
    if (std::ranges::count(split_choices(row.aliases), std::string_view(word).substr(2)) > 0) {
      return &row;
    }
  }
  return nullptr;
}

/// Options before which another one stands in place of their value. What else is wrong follows from
/// that.
void require_values(const Lines& words) {
  Lines problems;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const FlagRow* const row = needs_value(words[at]);
    if (row == nullptr) continue;
    if (at + 1 < words.size() && !words[at + 1].starts_with("--")) continue;
    const bool telling = row->value.find('|') != std::string_view::npos;
    problems.push_back(fmt::format(
        "{}: needs a value{}{}", words[at], telling ? ": " : "",
        telling ? fmt::format("{}", fmt::join(split_choices(row->value), " or ")) : ""));
  }
  raise(problems);
}

/// Names stand in checkpoints and records, which are JSON.
void require_utf8(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (!find_invalid_utf8(argument)) continue;
    fail(ErrorCode::usage, "\"{}\": is not UTF-8; rename the file", printable(argument));
  }
}

/// Options that do nothing here may have a value that is nothing, which the parser takes for none:
/// "--report_to=", "--report_to []".
void add_word(Lines& words, std::string word) {
  const auto is_nothing = [](std::string_view value) {
    return value.empty() || value == "[]" || value == "{}";
  };
  const auto does_nothing = [](const std::string& option) {
    const FlagRow* const row = needs_value(option);
    return row != nullptr &&
           (row->status == FlagStatus::hint || row->status == FlagStatus::refused);
  };
  const std::size_t equals = word.find('=');
  if (!words.empty() && is_nothing(word) && does_nothing(words.back())) {
    word.clear();
  } else if (equals != std::string::npos && is_nothing(std::string_view(word).substr(equals + 1)) &&
             does_nothing(word.substr(0, equals))) {
    words.push_back(word.substr(0, equals));
    word.clear();
  }
  words.push_back(std::move(word));
}

TrainOptions read_flags(std::span<const std::string> arguments, Lines& problems) {
  require_utf8(arguments);
  Lines words;
  for (const std::string& argument : arguments) add_word(words, with_underscores(argument));
  require_values(words);
  const std::vector<FlagRow> named = named_in(words);
  CLI::App app;
  declare(app, named);
  Lines reversed(words.rbegin(), words.rend());  // the order in which CLI11 takes them
  try {
    app.parse(reversed);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string what = error.what();
    fail(ErrorCode::usage, "{}: needs a value", what.substr(0, what.find(':')));
  } catch (const CLI::ParseError& error) {
    fail(ErrorCode::usage, "{}", error.what());
  }
  TrainOptions options;
  for (const FlagRow& row : named) {
    check_spellings(app, row, problems);
    std::vector<std::string_view> names = split_choices(row.aliases);
    names.insert(names.begin(), row.name);
    for (const std::string_view name : names) {
      const CLI::Option* const option = app.get_option(fmt::format("--{}", name));
      if (option->count() == 0) continue;
      if (row.takes_files()) check_repeated_files(words, name, problems);
      read_flag(row, option->get_name(), option->results(), options, problems);
    }
    if (row.negatable) read_negation(app, row, options, problems);
  }
  report_unknown(app.remaining(), problems);
  translate_foreign(options, problems);
  for (std::string& problem : strategy_problems(options)) problems.push_back(std::move(problem));
  for (std::string& line : strategy_warnings(options)) options.warnings.push_back(std::move(line));
  return options;
}

void require_model(const TrainOptions& options, Lines& problems) {
  const std::vector<std::string> random_weights = {
      options.config_name.typed_as,         options.config_overrides.typed_as,
      options.num_layers.typed_as,          options.hidden_size.typed_as,
      options.num_attention_heads.typed_as, options.max_position_embeddings.typed_as};
  const bool sizes = options.num_layers.typed() || options.hidden_size.typed();
  if (!options.model_name_or_path.typed()) {
    if (options.config_name.typed() || sizes) return;
    problems.emplace_back(
        "a model is required: --model_name_or_path DIR, or --config_name gpt2 for random weights");
    return;
  }
  for (const std::string& other : random_weights) {
    if (other.empty()) continue;
    problems.push_back(fmt::format(
        "{} makes random weights, but --model_name_or_path brings its own; give one of them",
        other));
  }
}

void check_configuration(const TrainOptions& options, Lines& problems) {
  const Flag<std::string>& first = options.deepspeed;
  const Flag<std::string>& second = options.deepspeed_config;
  const bool bare = first.typed() && first.value.empty();
  if (bare && !second.typed() && !options.zero_stage.typed()) {
    problems.emplace_back(
        "--deepspeed needs a file, after it or after --deepspeed_config, or --zero_stage N");
  }
  if (!bare && first.typed() && second.typed() && first.value != second.value) {
    problems.push_back(fmt::format("--deepspeed {} and --deepspeed_config {} name two files",
                                   first.value, second.value));
  }
}

}  // namespace

TrainOptions read_train_flags(std::span<const std::string> arguments) {
  Lines problems;
  TrainOptions options = read_flags(arguments, problems);
  raise(problems);
  return options;
}

TrainOptions parse_train_options(std::span<const std::string> arguments) {
  Lines problems;
  TrainOptions options = read_flags(arguments, problems);
  if (!options.output_dir.typed()) problems.emplace_back("--output_dir DIR is required");
  check_data_options(options, problems);
  require_model(options, problems);
  check_configuration(options, problems);
  raise(problems);
  return options;
}

std::string ds_config_file(const TrainOptions& options) {
  return options.deepspeed_config.typed() ? options.deepspeed_config.value
                                          : options.deepspeed.value;
}

std::vector<std::string> option_values(const TrainOptions& options) {
  std::vector<std::string> values;
  for (const FlagRow& row : implemented_flags()) {
    const bool path = row.value.find("DIR") != std::string_view::npos ||
                      row.value.find("FILE") != std::string_view::npos || row.name == "config_name";
    if (path) continue;
    const auto add = [&](auto target) {
      constexpr bool nothing = std::is_same_v<decltype(target), std::monostate>;
      constexpr bool files =
          std::is_same_v<decltype(target), Flag<std::vector<DataFile>> TrainOptions::*>;
      if constexpr (!nothing && !files) {
        values.push_back(fmt::format("--{} {}", row.name, (options.*target).value));
      }
    };
    std::visit(add, row.target);
  }
  return values;
}

}  // namespace dstrain::config
