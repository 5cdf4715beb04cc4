#include "launcher/agent/stack_taker.h"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/agent/take_stacks.h"
#include "launcher/process/pipes.h"
#include "launcher/process/process.h"
#include "launcher/process/program_path.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr double seconds_max = 10;
constexpr std::size_t text_bytes_max = 1U << 20;

}  // namespace

void StackTaker::take(std::uint32_t request) {
  requests_.push_back(request);
  if (pid_ != 0) return;
  text_.clear();
  deadline_ = clock_.now_seconds() + seconds_max;
  try {
    start();
  } catch (const Error& error) {
    text_ = error.what();
    answer();
  }
}

void StackTaker::start() {
  ProcessSpec process;
  process.program = own_path();
  process.argv = {process.program, "agent", std::string(stacks_argument)};
  for (AgentRank& rank : ranks_) {
    if (!rank.running()) continue;
    process.argv.push_back(
        fmt::format("{}:{}:{}", rank.rank(), rank.pid(), fmt::join(rank.view().threads(), ",")));
  }
  PipeEnds pipe = make_pipe();
  make_non_blocking(pipe.read.get());
  process.stdout_fd = pipe.write.get();
  process.parent_death_signal = SIGKILL;
  const Result<pid_t> pid = start_process(process);
  if (!pid.ok()) fail(ErrorCode::remote, "{}", pid.error());
  pid_ = pid.value();
  output_ = std::move(pipe.read);
}

void StackTaker::tick() {
  if (pid_ == 0) return;
  read_available(output_, [this](std::string_view part) {
    text_.append(part.substr(0, text_bytes_max - std::min(text_.size(), text_bytes_max)));
  });
  const bool late = clock_.now_seconds() >= deadline_;
  if (output_ && !late) return;
  if (late) text_ += fmt::format("gave up after {} s; the rest is missing\n", seconds_max);
  answer();
}

void StackTaker::answer() {
  kill_taker();
  for (const std::uint32_t request : requests_) sender_.stacks({request, text_});
  requests_.clear();
}

/// The agent reaps it like any child.
void StackTaker::kill_taker() {
  if (output_ && pid_ != 0) kill(pid_, SIGKILL);
  output_.reset();
  pid_ = 0;
}

std::optional<double> StackTaker::deadline() const {
  return pid_ != 0 ? std::optional(deadline_) : std::nullopt;
}

}  // namespace dstrain::launcher
