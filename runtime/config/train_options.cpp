#include "runtime/config/train_options.h"

#include <algorithm>
#include <charconv>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/config/schema.h"
#include "runtime/config/suggest.h"
#include "runtime/config/train_flags.h"

namespace dstrain::config {
namespace {

using Lines = std::vector<std::string>;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// --micro-batch-size=4 -> --micro_batch_size=4; values stay as they are.
std::string with_underscores(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const std::size_t end = std::min(argument.find('='), argument.size());
  std::replace(argument.begin() + 2, argument.begin() + static_cast<std::ptrdiff_t>(end), '-', '_');
  return argument;
}

/// One problem per line.
class FlagReader {
 public:
  FlagReader(TrainOptions& options, Lines& problems) : options_(options), problems_(problems) {}

  void read(const FlagRow& row, const std::string& typed_as, const std::string& text) {
    const std::size_t before = problems_.size();
    if (text.starts_with("--")) {  // the next option, taken for the value of this one
      problems_.push_back(fmt::format("{}: needs a value", typed_as));
      return;
    }
    std::visit([&](auto target) { store(row, options_.*target, typed_as, text); }, row.target);
    if (problems_.size() == before) check_built(row, typed_as, text);
  }

 private:
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
    constexpr double largest = 9e15;  // whole numbers are exact below
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
    if (!parse_number(typed_as, text, "a number", number)) return;
    if (in_range(row, number, typed_as, text)) flag = {number, typed_as};
  }

  void store(const FlagRow& /*row*/,
             Flag<bool>& flag,
             const std::string& typed_as,
             const std::string& text) {
    const std::string word = lower(text);
    const auto is = [&](std::initializer_list<std::string_view> words) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (is({"", "1", "true", "t", "yes", "y"})) {
      flag = {true, typed_as};
    } else if (is({"0", "false", "f", "no", "n"})) {
      flag = {false, typed_as};
    } else {
      problems_.push_back(fmt::format("{}: expected true or false, got \"{}\"", typed_as, text));
    }
  }

  bool parse_number(const std::string& typed_as,
                    const std::string& text,
                    std::string_view wanted,
                    double& number) {
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, number);
    if (!text.empty() && error == std::errc{} && stopped == end && std::isfinite(number))
      return true;
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
    problems_.push_back(fmt::format("{}: must be {}, got {}", typed_as, range, text));
    return false;
  }

  void check_built(const FlagRow& row, const std::string& typed_as, const std::string& text) {
    if (row.only.empty()) return;
    const auto allowed = split_choices(row.only);
    if (std::holds_alternative<Flag<bool> TrainOptions::*>(row.target)) {
      if (!(options_.*std::get<Flag<bool> TrainOptions::*>(row.target)).value) return;
    } else if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) {
      return;
    }
    problems_.push_back(fmt::format("{}{}{}: not implemented yet; leave it out or set it to {}",
                                    typed_as, text.empty() ? "" : " ", text,
                                    fmt::join(allowed, " or ")));
  }

  TrainOptions& options_;
  Lines& problems_;
};

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const FlagRow& row : train_flags()) {
    names.push_back(row.name);
    for (const std::string_view alias : split_choices(row.aliases)) names.push_back(alias);
  }
  return names;
}

std::string unknown_option(const std::string& name) {
  const std::size_t start = std::min(name.find_first_not_of('-'), name.size());
  const std::string likely = suggest(name.substr(start), known_names());
  return fmt::format("{}: unknown option{}", name,
                     likely.empty() ? std::string("; see dstrain train --help")
                                    : fmt::format("; did you mean --{}?", likely));
}

/// What follows an unknown option may be its value and is left alone.
void report_unknown(const std::vector<std::string>& extras, Lines& problems) {
  bool value_may_follow = false;
  for (const std::string& extra : extras) {
    const bool option = extra.starts_with("-") && extra != "-" && extra != "--";
    if (option) {
      problems.push_back(unknown_option(extra.substr(0, extra.find('='))));
    } else if (!value_may_follow) {
      problems.push_back(fmt::format("{}: an argument without an option", extra));
    }
    value_may_follow = option && extra.find('=') == std::string::npos;
  }
}

/// A parser that knows every option under one name each, aliases apart.
void declare(CLI::App& app) {
  app.set_help_flag();
  app.allow_extras();
  for (const FlagRow& row : train_flags()) {
    const bool optional = row.value_optional || row.value.empty();
    const auto add = [&](std::string_view name) {
      app.add_option(fmt::format("--{}", name))
          ->expected(optional ? 0 : 1, 1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    };
    add(row.name);
    for (const std::string_view alias : split_choices(row.aliases)) add(alias);
  }
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
  problems.push_back(fmt::format("{} {} and {} {} are the same option; keep one",
                                 typed[0]->get_name(), typed[0]->results().back(),
                                 typed[1]->get_name(), typed[1]->results().back()));
}

TrainOptions read_flags(std::span<const std::string> arguments, Lines& problems) {
  CLI::App app;
  declare(app);
  std::vector<std::string> reversed;  // the order in which CLI11 takes them
  for (const std::string& argument : arguments) reversed.push_back(with_underscores(argument));
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    problems.emplace_back(error.what());
    return {};
  }
  TrainOptions options;
  FlagReader reader(options, problems);
  for (const FlagRow& row : train_flags()) {
    check_spellings(app, row, problems);
    std::vector<std::string_view> names = split_choices(row.aliases);
    names.insert(names.begin(), row.name);
    for (const std::string_view name : names) {
      const CLI::Option* const option = app.get_option(fmt::format("--{}", name));
      if (option->count() > 0) reader.read(row, option->get_name(), option->results().back());
    }
  }
  report_unknown(app.remaining(), problems);
  return options;
}

void raise(const Lines& problems) {
  if (!problems.empty()) fail(ErrorCode::usage, "{}", fmt::join(problems, "\n"));
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
  const bool sizes = options.num_layers.typed() || options.hidden_size.typed();
  if (!options.output_dir.typed()) problems.emplace_back("--output_dir DIR is required");
  if (!options.train_file.typed()) problems.emplace_back("--train_file FILE is required");
  if (!options.model_name_or_path.typed() && !options.config_name.typed() && !sizes) {
    problems.emplace_back(
        "a model is required: --model_name_or_path DIR, or --config_name gpt2 for random weights");
  }
  if (options.model_name_or_path.typed()) {
    for (const auto& other :
         {options.config_name.typed_as, options.config_overrides.typed_as,
          options.num_layers.typed_as, options.hidden_size.typed_as,
          options.num_attention_heads.typed_as, options.max_position_embeddings.typed_as}) {
      if (other.empty()) continue;
      problems.push_back(fmt::format(
          "{} makes random weights, but --model_name_or_path brings its own; give one of them",
          other));
    }
  }
  const bool bare = options.deepspeed.typed() && options.deepspeed.value.empty();
  if (bare && !options.deepspeed_config.typed()) {
    problems.emplace_back("--deepspeed needs a file, after it or after --deepspeed_config");
  }
  const bool two_files = options.deepspeed.typed() && !bare && options.deepspeed_config.typed() &&
                         options.deepspeed.value != options.deepspeed_config.value;
  if (two_files) {
    problems.push_back(fmt::format("--deepspeed {} and --deepspeed_config {} name two files",
                                   options.deepspeed.value, options.deepspeed_config.value));
  }
  raise(problems);
  return options;
}

std::string ds_config_file(const TrainOptions& options) {
  return options.deepspeed_config.typed() ? options.deepspeed_config.value
                                          : options.deepspeed.value;
}

}  // namespace dstrain::config
