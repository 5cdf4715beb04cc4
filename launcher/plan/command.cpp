#include "launcher/plan/command.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "launcher/process/program_path.h"
#include "runtime/base/error.h"
#include "runtime/base/suggest.h"
#include "runtime/base/utf8.h"

namespace dstrain::launcher {
namespace {

std::string find_python(const LaunchOptions& options) {
  // Only the nodes know what the script puts on PATH.
  if (!options.venv_script.empty()) return "python3";
  std::string python = find_on_path("python3");
  if (python.empty()) fail(ErrorCode::remote, "python3 was not found on PATH; install it");
  return python;
}

std::string find_program(const std::string& name, std::span<const std::string_view> known) {
  std::error_code ignored;
  if (name.find('/') != name.npos) {
    if (!std::filesystem::exists(name, ignored)) {
      fail(ErrorCode::remote, "program {}: no such file", name);
    }
    if (!is_executable_file(name)) {
      fail(ErrorCode::remote, "program {}: not an executable file (chmod +x?)", name);
    }
    return name;
  }
  std::string found = find_on_path(name);
  if (!found.empty()) return found;
  const std::string near = suggest(name, known);
  if (!near.empty()) {
    fail(ErrorCode::usage, "\"{}\" is neither a command nor a program; did you mean \"{}\"?", name,
         near);
  }
  fail(ErrorCode::remote, "\"{}\" is neither a command nor a program on PATH ({})", name,
       is_executable_file(name) ? fmt::format("to run the file in this directory, write ./{}", name)
                                : "dstrain --help lists the commands");
}

/// Whether other programs use this word for training.
bool means_train(const std::string& name) {
  constexpr std::array<std::string_view, 12> words{
      "sft",      "train_sft", "run_sft", "finetune", "fine_tune", "fine-tune",
      "pretrain", "pt",        "run_clm", "fit",      "training",  "run_train"};
  return std::ranges::find(words, lower_case(name)) != words.end();
}

/// The launcher that a command starts, by its name or as a module of Python; else empty.
std::string named_launcher(std::span<const std::string> words, bool module) {
  constexpr std::array<std::string_view, 7> programs{
      "torchrun", "deepspeed", "accelerate", "mpirun", "mpiexec", "srun", "horovodrun"};
  constexpr std::array<std::string_view, 4> modules{
      "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch",
      "deepspeed.launcher.runner"};
  const std::string name = std::filesystem::path(words.front()).filename().string();
  if (!module && std::ranges::find(programs, name) != programs.end()) return name;
  const bool python_module = name.starts_with("python") && words.size() > 2 && words[1] == "-m";
  const std::string& called = python_module ? words[2] : words.front();
  return std::ranges::find(modules, called) != modules.end() ? called : "";
}

constexpr std::string_view takes_its_place =
    "dstrain takes its place: dstrain --num_gpus N train ..., or dstrain --num_gpus N PROGRAM ...";

/// On a host with one rank another launcher is a program like others.
void refuse_launcher(const CommandLine& line, std::size_t ranks) {
  const std::string name = named_launcher(line.command, line.options.module);
  if (name.empty() || ranks < 2) return;
  fail(ErrorCode::usage, "{}: each of {} ranks would start it; {}", name, ranks, takes_its_place);
}

/// A misspelt command must not run a program that happens to have its name.
void refuse_bare_word(const std::string& name, std::span<const std::string_view> known) {
  if (!named_launcher(std::array{name}, false).empty()) {
    fail(ErrorCode::usage, "{}: {}", name, takes_its_place);
  }
  if (name == "run" || name == "launch") {
    fail(ErrorCode::usage,
         "\"{}\" is not a command; leave it out: dstrain [launch options] PROGRAM", name);
  }
  const std::string near = means_train(name) ? "train" : suggest(name, known);
  if (!near.empty()) {
    fail(ErrorCode::usage, "\"{}\" is not a command; did you mean \"{}\"?", name, near);
  }
  fail(ErrorCode::usage,
       "\"{}\" is not a command (dstrain --help lists them); to run a program of this name, write "
       "dstrain -- {}",
       name, name);
}

}  // namespace

Command resolve_program(const CommandLine& line,
                        std::span<const std::string_view> known_commands,
                        std::size_t ranks) {
  const LaunchOptions& options = line.options;
  const std::vector<std::string>& words = line.command;
  const std::string& name = words.front();
  const bool script = name.ends_with(".py");
  const bool path = name.find('/') != name.npos;
  if (!script && !path && !line.launch_options_given && !line.after_dashes) {
    refuse_bare_word(name, known_commands);
  }
  refuse_launcher(line, ranks);
  Command command;
  if (options.module || (script && !options.no_python)) {
    std::error_code ignored;
    if (!options.module && !std::filesystem::exists(name, ignored)) {
      fail(ErrorCode::remote,
           "program {}: no such file; to train with dstrain, write train in place of a script",
           name);
    }
    command.program = find_python(options);
    command.argv = {command.program, "-u"};
    if (options.module) command.argv.emplace_back("-m");
    command.argv.push_back(name);
  } else {
    command.program = find_program(name, known_commands);
    command.argv = {name};
  }
  if ((options.module || script) && !options.no_local_rank) {
    command.local_rank_position = command.argv.size();
  }
  command.argv.insert(command.argv.end(), words.begin() + 1, words.end());
  return command;
}

std::string find_daemon() {
  const auto beside = std::filesystem::path(own_path()).parent_path() / "dstraind";
  std::string found = is_executable_file(beside) ? beside.string() : find_on_path("dstraind");
  if (found.empty()) {
    fail(ErrorCode::remote,
         "dstraind was found neither in {} nor on PATH; install all of dstrain's bin directory "
         "(pass --copy_binary to copy it to other hosts)",
         beside.parent_path().string());
  }
  return found;
}

Command resolve_daemon(std::span<const std::string> words) {
  Command command;
  command.daemon = true;
  command.program = find_daemon();
  command.argv = {command.program};
  command.argv.insert(command.argv.end(), words.begin(), words.end());
  return command;
}

}  // namespace dstrain::launcher
