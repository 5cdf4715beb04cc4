#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cmd/dstrain/commands.h"
#include "cmd/dstrain/launch_bench.h"
#include "launcher/process/signals.h"
#include "runtime/base/error.h"
#include "runtime/base/exception_text.h"
#include "runtime/base/log.h"
#include "runtime/base/printable.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/os/control_groups.h"
#include "runtime/os/mapped_file.h"
#include "runtime/rank/worker_env.h"
#include "runtime/session/version.h"

namespace dstrain::cmd {
namespace {

std::string describe_commands() {
  std::string text;
  for (const CommandInfo& command : all_commands()) {
    if (command.summary.empty()) continue;
    text += fmt::format("  {:<28}{}\n", command.name, command.summary);
  }
  return text;
}

void print_help() {
  std::string text =
      "Train language models on many processes.\n\n"
      "  dstrain [launch options] train   [training options]\n"
      "  dstrain [launch options] PROGRAM [program arguments]\n"
      "  dstrain COMMAND ...\n\n"
      "Put launch options before the command or program; everything after it is passed on\n"
      "unchanged. PROGRAM is a path or, after a launch option or --, a name on PATH. A name "
      "ending\n"
      "in .py runs under python3 -u with --local_rank=N as its first argument. Ranks find RANK,\n"
      "WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT and so on in their environment.\n\n"
      "Commands:\n";
  text += describe_commands();
  text += launcher::launch_options_help();
  text +=
      "\nThe files .deepspeed_env and .dstrain_env, in the home directory and in this one, set\n"
      "variables of the ranks with lines NAME=VALUE; files that other users may write are "
      "refused.\n"
      "\n"
      "Exit status:\n"
      "  0    done\n"
      "  2    wrong usage or input\n"
      "  3    could not launch\n"
      "  4    timed out\n"
      "  74   the last checkpoint, the model or metrics.jsonl was not written, or a save was "
      "killed\n"
      "  75   stopped on request with a checkpoint; rerun with --resume_from_checkpoint latest\n"
      "  130  Ctrl-C without a checkpoint\n"
      "  else the status of the first rank that failed; 128 + N if signal N ended it\n";
  fmt::print("{}", text);
}

/// Whether these launch options are all --device.
bool names_device_alone(std::span<const std::string> options) {
  while (!options.empty() && options.front().substr(0, options.front().find('=')) == "--device") {
    options = options.subspan(launcher::launch_option_words(options));
  }
  return options.empty();
}

/// `dstrain help [COMMAND]`, `version` and `list`, which other programs have. A program of such a
/// name is started behind a launch option or "--". None: the words are something else.
std::optional<int> run_help_word(std::span<const std::string> arguments);

/// `dstrain --version --verbose` and the like.
bool asks_for_build(std::span<const std::string> arguments) {
  const auto has = [arguments](std::string_view word) {
    return std::ranges::find(arguments, word) != arguments.end();
  };
  return arguments.size() == 2 && has("--verbose") && (has("--version") || has("version"));
}

int run(std::span<const std::string> arguments) {
  if (asks_for_build(arguments)) return print_version(true), status::done;
  if (const auto status = run_help_word(arguments)) return *status;
  const launcher::CommandLine line = launcher::parse_command_line(arguments);
  if (line.help) return print_help(), status::done;
  if (line.version) return print_version(false), status::done;
  start_log(line.options.log_level);
  name_shortened_files();
  if (line.command.empty()) {
    fail(ErrorCode::usage,
         "nothing to run: give a command or a program (dstrain --help lists the commands)");
  }
  // --module names a Python module, whatever its name.
  const CommandInfo* const command =
      line.options.module ? nullptr : find_command(line.command.front());
  const std::span<const std::string> words(line.command);
  // With a value it is LLaVA's option, which names a chat template. `complete` takes any words.
  if (command != nullptr && command->name != "complete" && words.back() == "--version") {
    return print_version(false), status::done;
  }
  const bool benches_launch =
      command != nullptr && command->name == "bench" && words.size() > 1 && words[1] == "launch";
  if (benches_launch && !line.launch_options_given) return launch_bench_command(words.subspan(2));
  if (benches_launch) fail(ErrorCode::usage, "bench launch takes no launch options");
  if (command == nullptr || command->kind == CommandInfo::Kind::daemon) {
    return launch_command(line, command);
  }
  // Options for hosts or the device may stand on either side of the command.
  const std::span<const std::string> in_front = arguments.first(arguments.size() - words.size());
  const bool plans = command->name == "plan" || command->name == "config";
  if (line.launch_options_given && command->name != "doctor" &&
      !(plans && names_device_alone(in_front))) {
    fail(ErrorCode::usage, "{} takes no launch options{}", command->name,
         plans ? " but --device" : "");
  }
  std::vector<std::string> both(words.begin() + 1, words.end());
  if (line.launch_options_given) both.insert(both.end(), in_front.begin(), in_front.end());
  limit_compute_threads(usable_cores());
  return command->run(both);
}

std::optional<int> run_help_word(std::span<const std::string> arguments) {
  const std::string word = arguments.empty() ? "" : arguments.front();
  if (word == "help" && arguments.size() > 1) {
    std::vector<std::string> asked(arguments.begin() + 1, arguments.end());
    asked.emplace_back("--help");
    return run(asked);
  }
  if (word != "help" && word != "version" && word != "list") return std::nullopt;
  if (arguments.size() > 1) fail(ErrorCode::usage, "{} takes no options", word);
  if (word == "help") print_help();
  if (word == "version") print_version(false);
  if (word == "list") {
    fmt::print("{}\nOptions: dstrain help COMMAND. Running jobs: dstrain status.\n",
               describe_commands());
  }
  return status::done;
}

}  // namespace
}  // namespace dstrain::cmd

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // so that a write beyond RLIMIT_FSIZE fails with an error
  try {
    dstrain::launcher::reset_inherited_signals();
    dstrain::launcher::fill_standard_streams();
    dstrain::session::require_core("dstrain", DSTRAIN_VERSION);
    const int status = dstrain::cmd::run(std::vector<std::string>(argv + 1, argv + argc));
    if (std::fflush(stdout) != 0) dstrain::fail_errno(errno, "write to stdout");
    return status;
  } catch (const dstrain::Error& error) {
    fmt::print(stderr, "dstrain: error: {}\n", dstrain::printable_message(error.what()));
    return dstrain::exit_status(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "dstrain: error: {}\n",
               dstrain::printable_message(dstrain::exception_text(error)));
    return dstrain::status::failed;
  }
}
