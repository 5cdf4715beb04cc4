#include "launcher/agent/agent_rank.h"

#include <cerrno>
#include <cstdlib>

#include <unistd.h>

#include "launcher/plan/machine.h"
#include "launcher/process/pipes.h"
#include "launcher/process/process.h"
#include "runtime/base/error.h"
#include "runtime/rank/inherited_listener.h"
#include "runtime/rank/progress_page.h"
#include "runtime/rank/rank_control.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

bool is_set(const std::vector<EnvVar>& variables, const char* name) {
  for (const EnvVar& variable : variables) {
    if (variable.name == name) return true;
  }
  return std::getenv(name) != nullptr;
}

std::vector<EnvVar> environment(const AgentRank::Context& context, std::size_t index) {
  const RankSpec& rank = context.job.ranks[index];
  const auto local_rank = static_cast<std::size_t>(rank.local_rank);
  std::vector<EnvVar> env = context.job.env;
  if (!is_set(env, env::omp_num_threads)) {
    const int share =
        context.bindings.empty()
            ? cores_per_rank(context.cores, static_cast<int>(context.job.slots.size()))
            : context.bindings[local_rank].cores;
    set_env(env, env::omp_num_threads, std::to_string(share));
  }
  // Otherwise libgomp's threads spin for minutes of CPU time and starve other processes.
  if (!is_set(env, "OMP_WAIT_POLICY") && !is_set(env, "GOMP_SPINCOUNT")) {
    set_env(env, "GOMP_SPINCOUNT", "20000");
  }
  for (const EnvVar& variable : rank.env) set_env(env, variable.name, variable.value);
  return env;
}

}  // namespace

AgentRank AgentRank::start(const Context& context, std::size_t index) {
  const JobSpec& job = context.job;
  const RankSpec& spec = job.ranks[index];
  PipeEnds out = make_pipe();
  PipeEnds err = make_pipe();
  for (const PipeEnds* pipe : {&out, &err}) make_non_blocking(pipe->read.get());
  AgentRank rank;
  const UniqueFd control = rank.channel_.open();
  const UniqueFd progress = ProgressPage::make_memory();
  rank.view_ = RankView(spec.rank, progress.get());
  rank.rank_ = spec.rank;
  if (!job.log_files.empty()) rank.log_ = RankLog(job.log_files[index]);
  ProcessSpec process;
  process.program = job.command.program;
  process.argv = arguments_of(job.command, spec.local_rank);
  process.env = environment(context, index);
  set_env(process.env, env::control_fd, std::to_string(control.get()));
  set_env(process.env, env::progress_fd, std::to_string(progress.get()));
  process.inherited_fds = {control.get(), progress.get()};
  if (spec.rank == 0 && context.listener >= 0) {
    set_env(process.env, env::listener_fd, std::to_string(context.listener));
    process.inherited_fds.push_back(context.listener);
  }
  process.traceable = true;
  if (!context.bindings.empty()) {
    const CoreBinding& binding = context.bindings[static_cast<std::size_t>(spec.local_rank)];
    process.cpus = binding.cpus;
    process.memory_nodes = binding.nodes;
  }
  process.working_directory = job.working_directory;
  UniqueFd input;
  if (!job.input.empty()) input = make_text_file(job.input);
  process.stdin_fd = input ? input.get() : context.null_fd;
  process.stdout_fd = out.write.get();
  process.stderr_fd = err.write.get();
  process.parent_death_signal = SIGKILL;
  process.signal_mask = context.signal_mask;
  const Result<pid_t> pid = start_process(process);
  if (!pid.ok()) fail(ErrorCode::remote, "{}", pid.error());
  rank.pid_ = pid.value();
  rank.view_.started(rank.pid_);
  rank.pipes_ = {std::move(out.read), std::move(err.read)};
  return rank;
}

void AgentRank::signal(int number) const {
  if (!running_) return;
  kill(-pid_, number);
  if (number == SIGTERM) kill(-pid_, SIGCONT);
}

void AgentRank::read_output(OutputStream stream, std::size_t bytes_max, OnOutput on_output) {
  UniqueFd& pipe = pipes_[static_cast<std::size_t>(stream)];
  std::array<char, 64U << 10> buffer;
  for (std::size_t total = 0; pipe && total < bytes_max;) {
    const ssize_t got = read(pipe.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      pipe.reset();
      return;
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    total += bytes.size();
    log_failed_ |= !log_.output(stream, bytes);
    on_output(stream, bytes);
  }
}

}  // namespace dstrain::launcher
