#include "runtime/config/train_options.h"

#include <algorithm>
#include <optional>
#include <span>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/base64.h"
#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"
#include "runtime/base/suggest.h"
#include "runtime/base/utf8.h"
#include "runtime/config/choice.h"
#include "runtime/config/flag_reader.h"
#include "runtime/config/foreign_remedies.h"
#include "runtime/config/options_file.h"
#include "runtime/config/schema.h"
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

/// "--no_bf16" and "--disable_bf16" mean "--bf16 false", unless we have an option --no_bf16.
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

/// Other scripts' names for options that are not similar enough to ours to be guessed:
/// cifar10_deepspeed.py, axolotl, nanoGPT, RWKV, OLMo, LMFlow, ColossalAI and others.
std::string renamed_option(std::string_view word) {
  using Name = std::pair<std::string_view, std::string_view>;
  constexpr std::array names{
      Name{"e", "num_train_epochs"},
      Name{"b", "per_device_train_batch_size"},
      Name{"sequence_len", "block_size"},
      Name{"ctx_len", "block_size"},
      Name{"context_length", "block_size"},
      Name{"out_dir", "output_dir"},
      Name{"save_folder", "output_dir"},
      Name{"dataset_path", "train_file"},
      Name{"data_file", "train_file"},
      Name{"model_ckpt", "model_name_or_path"},
      Name{"max_iters", "max_steps"},
      Name{"num_iterations", "max_steps"},
      Name{"lr_init", "learning_rate"},
      Name{"lr_schedule", "lr_scheduler_type"},
      Name{"grad_clip", "max_grad_norm"},
      Name{"grad_cp", "gradient_checkpointing"},
      Name{"use_grad_checkpoint", "gradient_checkpointing"},
      Name{"log_every", "logging_steps"},
      Name{"save_every", "save_steps"},
      Name{"checkpoint_every", "save_steps"},
  };
  const auto* const found = std::ranges::find(names, word, &Name::first);
  return found == names.end() ? std::string() : std::string(found->second);
}

std::string typographic_dash(const std::string& word, const std::string& plain) {
  return fmt::format("{}: begins with a typographic dash; write {}", word, plain);
}

std::string unknown_option(const std::string& name) {
  const std::size_t start = std::min(name.find_first_not_of('-'), name.size());
  const std::string likely = likely_option(name.substr(start));
  if (likely.empty()) return fmt::format("{}: unknown option; see dstrain train --help", name);
  const FlagRow* const row = find_flag(likely);
  const bool refused = row != nullptr && row->status == FlagStatus::refused;
  return fmt::format("{}: unknown option; did you mean --{}{}?", name, likely,
                     refused ? fmt::format(" ({})", row->help) : "");
}

/// Gives advice on a word without an option, as other programs accept.
std::string stray_word(const std::string& word) {
  constexpr std::string_view stray = "an argument without an option";
  const auto ends = [&](std::string_view extension) {
    return lower_case(word).ends_with(extension);
  };
  if (word.empty()) return fmt::format("\"\": {}", stray);
  if (ends(".yaml") || ends(".yml") || ends(".json")) {
    return fmt::format("{}: {}; a file of options is --config {}", word, stray, word);
  }
  if (ends(".py")) {
    return fmt::format("{}: {}; leave it out: train takes the place of a training script", word,
                       stray);
  }
  if (word.find_first_not_of(" \t\r\n") == std::string::npos) {
    return fmt::format("\"{}\": {}; nothing may stand behind the \\ at the end of a line",
                       printable(word), stray);
  }
  return fmt::format("{}: {}", word, stray);
}

/// The word after an unknown option may be its value and is not reported.
void report_unknown(const std::vector<std::string>& extras, Lines& problems) {
  bool value_may_follow = false;
  for (const std::string& extra : extras) {
    const bool number = parse_number<double>(extra).has_value();
    const std::string plain = with_plain_dashes(extra);
    const bool option = extra.starts_with("-") && extra != "-" && !number;
    if (!plain.empty()) {
      problems.push_back(typographic_dash(extra, plain));
    } else if (option) {
      problems.push_back(unknown_option(extra.substr(0, extra.find('='))));
    } else if (!value_may_follow) {
      problems.push_back(stray_word(extra));
    }
    value_may_follow = (option || !plain.empty()) && extra.find('=') == std::string::npos;
  }
}

std::string negation(const FlagRow& row) {
  return fmt::format("--no_{}", row.name);
}

/// Returns only the options that the words name: CLI11 takes quadratic time to declare options.
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

/// Declares these options, each alias as a separate name.
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

/// Alpaca-LoRA's --batch_size is the batch of all ranks, beside a --micro_batch_size.
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

/// Reports two spellings of one option with different values. Options without effect share a row
/// although they are different, so they are not compared.
void check_spellings(const CLI::App& app, const FlagRow& row, Lines& problems) {
  if (row.status != FlagStatus::implemented) return;
  const CLI::Option& first = *app.get_option(fmt::format("--{}", row.name));
  std::vector<const CLI::Option*> typed;
  if (first.count() > 0) typed.push_back(&first);
  for (const std::string_view alias : split_choices(row.aliases)) {
    const CLI::Option* const option = app.get_option(fmt::format("--{}", alias));
    if (option->count() > 0) typed.push_back(option);
  }
  const auto words = [&](const CLI::Option& option) {
    return row.takes_files() ? fmt::format("{}", fmt::join(option.results(), " "))
                             : option.results().back();
  };
  for (std::size_t other = 1; other < typed.size(); ++other) {
    const std::string one = words(*typed[0]);
    const std::string two = words(*typed[other]);
    if (same_value(row, one, two)) continue;
    problems.push_back(fmt::format("{} {} and {} {} are the same option; {}", typed[0]->get_name(),
                                   one, typed[other]->get_name(), two,
                                   global_batch(*typed[0], *typed[other])));
    return;
  }
}

/// Reports files given in several options. For other options the last one counts, but the parser
/// joins the words of repeated file options into one list.
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
  if (same_value(row, positive.results().back(), "false")) return;
  problems.push_back(
      fmt::format("{} and {} are the same option; keep one", positive.get_name(), name));
}

/// An option as typed on the command line.
struct TypedOption {
  const FlagRow* row = nullptr;        ///< null: the word is not an option
  bool negated = false;                ///< --no_NAME
  std::optional<std::string> value{};  ///< after "="
};

TypedOption typed_option(const std::string& word) {
  if (!word.starts_with("--")) return {};
  const std::size_t equals = word.find('=');
  const std::string_view name = std::string_view(word).substr(2, equals - 2);
  TypedOption typed{.row = find_flag(name)};
  if (equals != std::string::npos) typed.value = word.substr(equals + 1);
  if (typed.row != nullptr || !name.starts_with("no_")) return typed;
  const FlagRow* const positive = find_flag(name.substr(3));
  if (positive == nullptr || !positive->negatable || positive->name != name.substr(3)) return typed;
  typed.row = positive;
  typed.negated = true;
  return typed;
}

std::string needs_value(const FlagRow& row, const std::string& typed_as) {
  const bool telling = row.value.find('|') != std::string_view::npos;
  const std::string values = row.boolean() ? "true or false"
                             : telling
                                 ? fmt::format("{}", fmt::join(split_choices(row.value), " or "))
                                 : "";
  return fmt::format("{}: needs a value{}{}", typed_as, values.empty() ? "" : ": ", values);
}

/// "--no_packing false"
std::string refused_negation(const FlagRow& row, const std::string& value) {
  const bool off = value.empty() || same_value(row, value, "true");
  return fmt::format("{} {}: takes no value; {}", negation(row), value.empty() ? "\"\"" : value,
                     off ? "leave the value out" : fmt::format("write --{} true", row.name));
}

/// Removes options without effect here whose value is empty. Throws Error{usage} if a value is
/// missing: it is empty, or another option follows. Further errors would only be consequences.
Lines with_values(const Lines& words) {
  Lines kept;
  Lines problems;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const TypedOption typed = typed_option(words[at]);
    kept.push_back(words[at]);
    if (typed.row == nullptr) continue;
    const FlagRow& row = *typed.row;
    const std::string name = words[at].substr(0, words[at].find('='));
    const bool followed = !typed.value && at + 1 < words.size();
    const bool by_option = followed && words[at + 1].starts_with("--");
    if (typed.negated) {
      const std::string value = typed.value.value_or(followed ? words[at + 1] : "--");
      const bool meant = typed.value || value.empty() || is_boolean(value);
      if (!meant || by_option) continue;
      problems.push_back(refused_negation(row, value));
      if (followed) ++at;
      continue;
    }
    const bool missing = !typed.value && (!followed || by_option);
    if (missing) {
      if (!row.boolean() && !row.value_optional) problems.push_back(needs_value(row, name));
      continue;
    }
    const std::string& value = typed.value ? *typed.value : words[at + 1];
    const bool acts = row.status == FlagStatus::implemented;
    const bool nothing = value.empty() || (!acts && (value == "[]" || value == "{}"));
    if (!nothing) continue;
    if (acts) problems.push_back(needs_value(row, name));
    kept.pop_back();
    if (followed) ++at;
    const bool continued = row.several && at + 1 < words.size() && !words[at + 1].starts_with("--");
    if (continued) kept.push_back(name);
  }
  raise(problems);
  return kept;
}

/// Refuses quotes that a word processor has put in place of " and ', and line ends of Windows.
void refuse_odd_characters(std::span<const std::string> words) {
  constexpr std::array<std::string_view, 4> quotes{"\u201c", "\u201d", "\u201e", "\u2018"};
  for (const std::string& word : words) {
    if (word.ends_with('\r')) {
      fail(ErrorCode::usage,
           "{}: ends with a carriage return: the script has the line ends of Windows; convert it: "
           "sed -i 's/\\r$//' SCRIPT",
           printable(word));
    }
    const std::string_view value = std::string_view(word).substr(word.find('=') + 1);
    const bool quoted =
        std::ranges::any_of(quotes, [&](std::string_view one) { return value.starts_with(one); });
    if (quoted) {
      fail(ErrorCode::usage, "{}: has typographic quotes; type \" or ' in place of them", word);
    }
  }
}

/// Refuses words between "train" and its options, and dashes that a word processor has made of
/// "--".
void refuse_dashes(const Lines& words) {
  if (std::ranges::find(words, "--") != words.end()) {
    fail(ErrorCode::usage, "--: leave it out: the options of train stand right behind the word");
  }
  Lines problems;
  for (const std::string& word : words) {
    const std::string plain = with_plain_dashes(word);
    if (plain.empty() || typed_option(with_underscores(plain)).row == nullptr) continue;
    problems.push_back(typographic_dash(word, plain));
  }
  raise(problems);
}

/// Names are stored in checkpoints and records as JSON, which must be UTF-8.
void require_utf8(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (!find_invalid_utf8(argument)) continue;
    fail(ErrorCode::usage, "\"{}\": is not UTF-8; rename the file", printable(argument));
  }
}

TrainOptions read_flags(std::span<const std::string> arguments, Lines& problems) {
  require_utf8(arguments);
  refuse_odd_characters(arguments);
  Lines words;
  for (const std::string& argument : arguments) words.push_back(with_underscores(argument));
  refuse_dashes(words);
  words = with_values(words);
  const std::vector<FlagRow> named = named_in(words);
  CLI::App app;
  declare(app, named);
  Lines reversed(words.rbegin(), words.rend());  // CLI11 takes them in reverse order
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

/// Reads the arguments, and adds what `check` finds to the problems.
template <class Check>
TrainOptions read_arguments(const ExpandedArguments& arguments, const Check& check) {
  return located(arguments.places(), [&] {
    Lines problems;
    TrainOptions options = read_flags(arguments.words(), problems);
    options.places = arguments.places();
    check(options, problems);
    raise(problems);
    for (std::string& warning : options.warnings) warning = options.places.put_into(warning);
    options.warnings.insert(options.warnings.begin(), arguments.warnings().begin(),
                            arguments.warnings().end());
    return options;
  });
}

}  // namespace

/// Returns the most likely option. An option without effect is suggested only for a misspelling.
std::string likely_option(const std::string& word) {
  std::string renamed = renamed_option(with_underscores("--" + word).substr(2));
  if (!renamed.empty()) return renamed;
  std::string negated = negated_option(with_underscores("--" + word).substr(2));
  if (!negated.empty()) return negated;
  std::string spelled = suggest_spelling(word, names_of(train_flags()));
  if (!spelled.empty()) return spelled;
  const std::string related = suggest(word, names_of(implemented_flags()));
  return related.empty() && names_held_out_file(word) ? "validation_file" : related;
}

TrainOptions read_train_flags(std::span<const std::string> arguments) {
  return read_arguments(ExpandedArguments(arguments),
                        [](const TrainOptions& /*options*/, Lines& /*problems*/) {});
}

TrainOptions parse_train_options(const ExpandedArguments& arguments) {
  return read_arguments(arguments, [](TrainOptions& options, Lines& problems) {
    if (!options.output_dir.typed()) problems.emplace_back("--output_dir DIR is required");
    check_data_options(options, problems);
    require_model(options, problems);
    check_configuration(options, problems);
  });
}

TrainOptions parse_train_options(std::span<const std::string> arguments) {
  return parse_train_options(ExpandedArguments(arguments));
}

std::string ds_config_file(const TrainOptions& options) {
  const std::string& given =
      options.deepspeed_config.typed() ? options.deepspeed_config.value : options.deepspeed.value;
  const std::optional<std::string> decoded = decode_base64(given);
  return decoded && is_json_text(*decoded) ? *decoded : given;
}

bool is_json_text(std::string_view ds_config) {
  const std::size_t first = ds_config.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && ds_config[first] == '{';
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
