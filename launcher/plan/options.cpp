#include "launcher/plan/options.h"

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>

#include "launcher/plan/option_checks.h"
#include "launcher/plan/option_flags.h"
#include "launcher/plan/raw_options.h"
#include "runtime/base/error.h"
#include "runtime/config/suggest.h"

namespace dstrain::launcher {
namespace {

/// CLI11 does the conversions and the help text; which words belong to it is decided by split().
class Parser {
 public:
  explicit Parser(CommandLine& line) : line_(line), app_("", "dstrain") {
    add_option_flags(app_, line_, raw_);
  }

  void parse(std::span<const std::string> arguments);
  [[nodiscard]] std::size_t words_at_front(std::span<const std::string> words) const;
  [[nodiscard]] std::string help() const {
    return CLI::Formatter().make_groups(&app_, CLI::AppFormatMode::Normal);
  }

 private:
  std::size_t split(std::span<const std::string> arguments, std::vector<std::string>& launch);
  const CLI::Option& known(const std::string& name);

  CommandLine& line_;
  RawOptions raw_;
  CLI::App app_;
};

const CLI::Option& Parser::known(const std::string& name) {
  if (const CLI::Option* found = app_.get_option_no_throw(name)) return *found;
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(app_).get_options()) {
    for (const std::string& known_name : option->get_lnames()) names.push_back("--" + known_name);
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string near = config::suggest(name, views);
  if (near.empty()) {
    fail(ErrorCode::usage,
         "unknown launch option {}; options of the program stand after its name "
         "(dstrain --help lists the launch options)",
         name);
  }
  fail(ErrorCode::usage, "unknown launch option {}; did you mean {}?", name, near);
}

/// "--num-gpus=2" -> "--num_gpus", "-n2" -> "-n".
std::string option_name(const std::string& word) {
  if (!word.starts_with("--")) return word.substr(0, 2);
  std::string name = word.substr(0, word.find('='));
  std::replace(name.begin() + 2, name.end(), '-', '_');
  return name;
}

std::size_t Parser::words_at_front(std::span<const std::string> words) const {
  if (words.empty() || !words.front().starts_with('-')) return 0;
  const std::string name = option_name(words.front());
  const CLI::Option* const option = app_.get_option_no_throw(name);
  if (option == nullptr) return 0;
  const bool takes_next = option->get_items_expected_min() > 0 && words.size() > 1 &&
                          words.front().find('=') == std::string::npos;
  return takes_next ? 2 : 1;
}

/// Moves the launch options to `launch`, with names in one spelling; returns where the rest begins.
std::size_t Parser::split(std::span<const std::string> arguments,
                          std::vector<std::string>& launch) {
  for (std::size_t at = 0; at < arguments.size();) {
    std::string word = arguments[at];
    if (word == "--") return at + 1;
    if (word.size() < 2 || word.front() != '-') return at;
    line_.launch_options_given = true;
    ++at;
    const bool is_long = word.starts_with("--");
    const std::size_t equals = is_long ? word.find('=') : word.npos;
    const std::string name = option_name(word);
    const bool takes_value = known(name).get_items_expected_min() > 0;
    const bool joined = is_long ? equals != word.npos : word.size() > 2;
    launch.push_back(name);
    if (takes_value) {
      if (!joined && at == arguments.size()) {
        fail(ErrorCode::usage, "{}: a value is missing", name);
      }
      launch.push_back(joined ? word.substr(is_long ? equals + 1 : 2) : arguments[at++]);
    } else if (joined) {
      fail(ErrorCode::usage, "{}: takes no value", word);
    }
  }
  return arguments.size();
}

void Parser::parse(std::span<const std::string> arguments) {
  std::vector<std::string> launch;
  const std::size_t rest = split(arguments, launch);
  std::reverse(launch.begin(), launch.end());  // as CLI11 wants them
  try {
    app_.parse(launch);
  } catch (const CLI::ParseError& error) {
    fail(ErrorCode::usage, "{}", error.what());
  }
  if (!line_.help && !line_.version) check_options(line_.options, raw_);
  line_.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(rest), arguments.end());
}

}  // namespace

CommandLine parse_command_line(std::span<const std::string> arguments) {
  CommandLine line;
  Parser(line).parse(arguments);
  return line;
}

std::size_t launch_option_words(std::span<const std::string> words) {
  CommandLine line;
  return Parser(line).words_at_front(words);
}

std::string launch_options_help() {
  CommandLine line;
  return Parser(line).help();
}

}  // namespace dstrain::launcher
