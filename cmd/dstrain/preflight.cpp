#include "cmd/dstrain/preflight.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cmd/bench/options.h"
#include "cmd/chat_setup.h"
#include "cmd/evaluate_setup.h"
#include "cmd/generate_setup.h"
#include "launcher/plan/foreign_options.h"
#include "launcher/plan/options.h"
#include "runtime/backend/open_backend.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/number.h"
#include "runtime/config/train_flags.h"
#include "runtime/os/gpu_files.h"
#include "runtime/session/resume_plan.h"

namespace dstrain::cmd {

bool print_help(std::span<const std::string> command) {
  const auto has = [&](std::string_view word) {
    return std::ranges::find(command, word) != command.end();
  };
  const bool all = has("--help-all") || has("--help_all");
  if (!all && !has("--help") && !has("-h")) return false;
  const auto scope = all ? config::HelpScope::all : config::HelpScope::everyday;
  fmt::print("{}", command.front() == "train"      ? config::help_text(scope)
                   : command.front() == "bench"    ? bench::help()
                   : command.front() == "evaluate" ? evaluate_help()
                   : command.front() == "chat"     ? chat_help()
                                                   : generate_help());
  return true;
}

namespace {

bool is_train_option(const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  name.erase(0, name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  return config::find_flag(name) != nullptr;
}

/// Reads the first samples, to find ids that the model does not know; the others are checked during
/// training.
void check_samples(const data::SampleSource& source) {
  constexpr std::int64_t checked_tokens = 1 << 24;
  data::SampleBuffer sample(1, source.sizes());
  const std::int64_t most = (checked_tokens - 1) / source.block_size() + 1;
  for (std::int64_t k = 0; k < std::min(source.samples(), most); ++k) {
    source.read(k, sample.rows());
  }
}

/// Starts the device of the first rank on this machine; no device if no rank here uses one.
session::DeviceRoom check_device(const TrainPlace& place) {
  if (place.ranks_here == 0 || place.device == DeviceKind::cpu) return {};
  return session::find_room(*open_backend({place.device, place.first_slot}), place.ranks_here);
}

void check_evaluation(std::span<const std::string> arguments, const TrainPlace& place) {
  const EvaluateSetup setup = set_up_evaluation(arguments, place);
  check_output_file(setup);
  if (setup.run.data.validation_data) check_samples(*setup.run.data.validation_data);
  if (place.starts) return;
  for (const std::string& warning : setup.run.settings.warnings) log_warning(warning);
}

}  // namespace

std::string read_input(std::span<const std::string> command) {
  return command.front() == "generate" ? read_generate_input(command.subspan(1)) : "";
}

void check_command(std::span<const std::string> command,
                   const std::string& input,
                   const TrainPlace& place) {
  if (command.front() == "bench" && place.device != DeviceKind::cpu) {
    fail(ErrorCode::usage, "--device {}: bench measures CPUs; use cpu", name_of(place.device));
  }
  TrainPlace here = place;
  here.room = check_device(place);
  const std::span<const std::string> arguments = command.subspan(1);
  if (command.front() == "evaluate") check_evaluation(arguments, here);
  if (command.front() == "chat") set_up_chat(arguments, here);
  if (command.front() == "generate") {
    set_up_generation(arguments, input, here);
  }
  if (command.front() == "bench") bench::parse_options(arguments, place.world_size);
}

std::unique_ptr<OutputLock> check_training(const config::TrainOptions& options,
                                           const TrainPlace& place,
                                           const std::string& job) {
  refuse_locked_output(options.output_dir.value);
  config::check_train_paths(options);
  TrainPlace here = place;
  here.room = check_device(place);
  const TrainSetup setup = set_up_training(options, here);
  session::refuse_unfit_output(setup.settings, place.world_size);
  if (setup.settings.trains) session::check_resume(setup);
  if (setup.data.training_data) check_samples(*setup.data.training_data);
  if (setup.data.validation_data) check_samples(*setup.data.validation_data);
  if (!place.starts) {
    for (const std::string& warning : setup.settings.warnings) log_warning(warning);
    return nullptr;
  }
  config::prepare_output_directory(options);
  auto lock = std::make_unique<OutputLock>(setup.settings.output.directory,
                                           OutputLock::Holder::launcher, job);
  config::check_train_paths(options);  // again: a job may have ended there meanwhile
  if (setup.settings.trains) session::check_resume(setup);
  return lock;
}

void refuse_launch_options(std::span<const std::string> command) {
  const auto is_own = [&](const std::string& word) {
    if (command.front() == "bench") return false;
    const bool trains = command.front() == "train" || command.front() == "evaluate";
    return is_train_option(word) && (trains || word.find("deepspeed") != word.npos);
  };
  // A text may look like anything.
  const auto is_text = [&](std::size_t at) {
    constexpr std::array<std::string_view, 3> before{"--prompt", "--stop", "--system"};
    return command.front() != "train" && std::ranges::find(before, command[at - 1]) != before.end();
  };
  for (std::size_t at = 1; at < command.size(); ++at) {
    const std::size_t words = launcher::launch_option_words(command.subspan(at));
    if (words == 0 || is_own(command[at]) || is_text(at)) continue;
    const bool epochs = command[at] == "-e" && words == 2 && parse_number<double>(command[at + 1]);
    if (epochs) continue;
    fail(ErrorCode::usage,
         "{} is a launch option: write it before the command, as in dstrain {} {} ...", command[at],
         fmt::join(command.subspan(at, words), " "), command.front());
  }
  for (std::size_t at = 1; at < command.size(); ++at) {
    const std::string& word = command[at];
    if (!word.starts_with("--") || is_own(word) || is_text(at)) continue;
    const std::size_t equals = std::min(word.find('='), word.size());
    std::string name = word.substr(0, equals);
    std::replace(name.begin() + 2, name.end(), '-', '_');
    const std::string next = at + 1 < command.size() ? command[at + 1] : "";
    const std::string hint = launcher::hint_at_own_option(
        name, equals < word.size() ? std::string_view(word).substr(equals + 1) : next);
    if (hint.empty()) continue;
    fail(ErrorCode::usage, "{}: write launch options before {}; {}", name, command.front(), hint);
  }
}

}  // namespace dstrain::cmd
