#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "cmd/dstrain/commands.h"
#include "launcher/doctor/texts.h"
#include "launcher/job/job_client.h"
#include "launcher/plan/option_checks.h"
#include "launcher/process/program_output.h"
#include "launcher/process/program_path.h"
#include "runtime/base/error.h"
#include "runtime/config/schema.h"
#include "runtime/config/train_flags.h"
#include "runtime/model/families.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

using launcher::doctor::split;
using Words = std::vector<std::string>;

/// Each asks `dstrain complete` for what the word at the cursor may become. Where that names
/// nothing, the shell completes file names.
constexpr std::string_view bash_script = R"(# dstrain completion bash
_dstrain() {
  local IFS=$'\n'
  COMPREPLY=($("${1/#\~/$HOME}" complete "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$2" 2>/dev/null))
}
complete -o bashdefault -o default -F _dstrain dstrain
)";

constexpr std::string_view zsh_script = R"(#compdef dstrain
# dstrain completion zsh
_dstrain() {
  local -a found
  found=("${(@f)$("${words[1]}" complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then
    compadd -- "${found[@]}"
  else
    _files
  fi
}
if [[ "${funcstack[1]}" == _dstrain ]]; then
  _dstrain "$@"
else
  compdef _dstrain dstrain
fi
)";

constexpr std::string_view fish_script = R"(# dstrain completion fish
function __dstrain_complete
  set -l words (commandline --tokenize --cut-at-cursor --current-process)
  set -l current (commandline --current-token --cut-at-cursor)
  $words[1] complete $words[2..-1] "$current" 2>/dev/null
end
complete --command dstrain --no-files --condition 'count (__dstrain_complete) >/dev/null' \
  --arguments '(__dstrain_complete)'
)";

constexpr std::array shells{std::pair{"bash", bash_script}, std::pair{"zsh", zsh_script},
                            std::pair{"fish", fish_script}};

/// The long names at the front of a help text's line: "-i,--include TEXT", "--no_shuffle{false}".
void add_names(std::string_view line, Words& names) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == line.npos || line[begin] != '-') return;
  line = line.substr(begin, line.find_first_of(" .", begin) - begin);
  for (const std::string& name : split(line, ',')) {
    if (name.starts_with("--")) names.push_back(name.substr(0, name.find('{')));
  }
}

/// The options that a help text lists, or shows in a line of usage.
Words options_in(const std::string& help) {
  Words names;
  for (const std::string& line : split(help, '\n')) {
    add_names(line, names);
    if (!line.starts_with("dstrain ") && line.find('[') == line.npos) continue;
    for (std::size_t at = line.find("--"); at != line.npos; at = line.find("--", at + 2)) {
      const std::size_t end = line.find_first_of(" ]|,.;:){", at);
      names.push_back(line.substr(at, end - at));
    }
  }
  return names;
}

/// The words behind a name in a help text that are joined by |: "--stage 2|3".
Words choices_behind(std::string_view name, const std::string& help) {
  for (const std::string& line : split(help, '\n')) {
    const std::size_t at = line.find(fmt::format("{} ", name));
    if (at == line.npos || (at > 0 && line[at - 1] != ' ' && line[at - 1] != '[')) continue;
    const std::size_t begin = at + name.size() + 1;
    const std::string value = line.substr(begin, line.find_first_of(" ]", begin) - begin);
    if (value.find('|') != value.npos) return split(value, '|');
  }
  return {};
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

/// A command's help, and that of each command within it.
struct Help {
  struct Section {
    std::string name;
    std::string text;
  };
  std::string text;
  std::vector<Section> sections;
};

/// The command within `command` whose help begins at a line: "dstrain checkpoint list DIR", or
/// "gemm" behind the line "Subcommands:".
std::string begun_section(const std::string& line, std::string_view command, bool listed) {
  const std::string usage = fmt::format("dstrain {} ", command);
  const std::size_t begin = line.starts_with(usage) ? usage.size() : 0;
  if (begin == 0 && !listed) return "";
  std::string name = line.substr(begin, line.find(' ', begin) - begin);
  return is_word(name) && (begin > 0 || name.size() == line.size()) ? name : "";
}

Help help_of(std::string_view command) {
  Help help;
  const auto output =
      launcher::run_program({launcher::own_path(), "help", std::string(command)}, 5);
  if (!output.ok()) return help;
  bool listed = false;
  for (const std::string& line : split(output.value().text, '\n')) {
    const std::string name = begun_section(line, command, listed);
    if (!name.empty()) help.sections.push_back({name, ""});
    std::string& text = help.sections.empty() ? help.text : help.sections.back().text;
    text += line + "\n";
    listed = listed || line == "Subcommands:";
  }
  return help;
}

Words names_of_commands() {
  Words names{"help", "version", "list"};
  for (const CommandInfo& command : all_commands()) {
    if (!command.summary.empty()) names.emplace_back(command.name);
  }
  return names;
}

Words presets() {
  Words names;
  for (const model::ModelFamily* const family : model::model_families()) {
    for (const model::ModelPreset& preset : family->presets) names.emplace_back(preset.name);
  }
  return names;
}

/// The values of an option that are known: of a training option, or the presets of any command.
Words values_of(const std::string& option, bool trains) {
  std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  std::ranges::replace(name, '-', '_');
  if (name == "config_name") return presets();
  const config::FlagRow* const row = trains ? config::find_flag(name) : nullptr;
  if (row == nullptr) return {};
  Words values;
  for (const std::string_view word : config::split_choices(row->choices)) values.emplace_back(word);
  for (const std::string_view word : config::split_choices(row->value)) {
    if (is_word(word)) values.emplace_back(word);
  }
  return values;
}

Words training_options() {
  Words names;
  for (const config::FlagRow& row : config::implemented_flags()) {
    names.push_back(fmt::format("--{}", row.name));
  }
  return names;
}

Words job_ids() {
  Words ids;
  for (const launcher::FoundJob& job : launcher::find_jobs().answering) ids.push_back(job.id);
  return ids;
}

bool takes_training_options(const CommandInfo& command) {
  return command.name == "train" || command.name == "init" || command.name == "plan";
}

/// What may follow a command and its first words.
Words within_command(const CommandInfo& command,
                     std::span<const std::string> before,
                     const std::string& current) {
  const bool trains = command.name == "train";
  const bool option = current.starts_with('-');
  if (!option && !before.empty() && before.back().starts_with("--")) {
    Words values = values_of(before.back(), takes_training_options(command));
    if (!values.empty()) return values;
  }
  if (trains) return option ? training_options() : Words();
  for (const char* const of_a_job : {"status", "save", "stop"}) {
    if (command.name == of_a_job && !option) return job_ids();
  }
  if (command.name == "completion") {
    Words names;
    for (const auto& [shell, script] : shells) names.emplace_back(shell);
    return names;
  }
  const Help help = help_of(command.name);
  if (before.empty() && !option) {
    Words names = choices_behind("TASK", help.text);
    for (const Help::Section& section : help.sections) names.push_back(section.name);
    return names;
  }
  if (!option && before.back().starts_with("--")) {
    for (const Help::Section& section : help.sections) {
      if (section.name == before.front()) return choices_behind(before.back(), section.text);
    }
    return choices_behind(before.back(), help.text);
  }
  Words names = options_in(help.text);
  for (const Help::Section& section : help.sections) {
    if (before.empty() || section.name != before.front()) continue;
    std::ranges::move(options_in(section.text), std::back_inserter(names));
  }
  if (takes_training_options(command)) {
    std::ranges::move(training_options(), std::back_inserter(names));
  }
  return option ? names : Words();
}

Words candidates(std::span<const std::string> before, const std::string& current) {
  const bool option = current.starts_with('-');
  while (!before.empty()) {
    const std::size_t words = launcher::launch_option_words(before);
    if (words == 0) break;
    const Words with_value{before.front(), "value"};
    if (before.size() == 1 && !option && launcher::launch_option_words(with_value) == 2) {
      const auto choices = launcher::launch_option_choices(before.front());
      return {choices.begin(), choices.end()};
    }
    before = before.subspan(std::min(words, before.size()));
  }
  if (before.empty()) {
    return option ? options_in(launcher::launch_options_help()) : names_of_commands();
  }
  if (before.front() == "help") return names_of_commands();
  const auto known = all_commands();
  const auto found = std::ranges::find(known, before.front(), &CommandInfo::name);
  return found == known.end() ? Words() : within_command(*found, before.subspan(1), current);
}

}  // namespace

int complete_command(std::span<const std::string> arguments) {
  if (arguments.empty()) fail(ErrorCode::usage, "complete: needs the words of a command line");
  Words before(arguments.begin(), arguments.end() - 1);
  std::string current = arguments.back();
  // "--option=val": one word, or as bash cuts it, three.
  std::string kept;
  const std::size_t equals = current.starts_with("--") ? current.find('=') : current.npos;
  if (equals != current.npos) {
    kept = current.substr(0, equals + 1);
    before.push_back(current.substr(0, equals));
    current.erase(0, equals + 1);
  } else if (current == "=") {
    current.clear();
  } else if (!before.empty() && before.back() == "=") {
    before.pop_back();
  }
  Words names = candidates(before, current);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    if (!name.empty() && name.starts_with(current)) fmt::print("{}{}\n", kept, name);
  }
  return status::done;
}

int completion_command(std::span<const std::string> arguments) {
  const std::string shell = arguments.size() == 1 ? arguments.front() : "";
  for (const auto& [name, script] : shells) {
    if (shell == name) return fmt::print("{}", script), status::done;
  }
  if (shell == "-h" || shell == "--help") {
    fmt::print(
        "dstrain completion bash|zsh|fish\n"
        "    Prints a script with which the shell completes commands, options, presets and ids of\n"
        "    jobs:\n"
        "      bash  eval \"$(dstrain completion bash)\" in ~/.bashrc\n"
        "      zsh   eval \"$(dstrain completion zsh)\" in ~/.zshrc, behind compinit\n"
        "      fish  dstrain completion fish > ~/.config/fish/completions/dstrain.fish\n");
    return status::done;
  }
  fail(ErrorCode::usage, "completion: give one shell: bash, zsh or fish");
}

}  // namespace dstrain::cmd
