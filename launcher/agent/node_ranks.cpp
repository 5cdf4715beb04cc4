#include "launcher/agent/node_ranks.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include "launcher/agent/rank_log.h"
#include "launcher/plan/command.h"
#include "launcher/plan/machine.h"
#include "launcher/process/program_path.h"
#include "runtime/base/error.h"
#include "runtime/os/control_groups.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t drain_bytes_max = 1U << 20;
constexpr const char* source_and_become = "script=$1; shift; . \"$script\" && exec \"$@\"";

/// Assigns GPUs to the ranks if slots are GPUs here. Slots beyond the GPUs share them in turn. A
/// task to which SLURM shows a single GPU has its own.
void assign_gpus(JobSpec& job, const Machine& machine) {
  if (!job.use_gpus || usable_gpus(machine) == 0) return;
  const std::vector<std::string> names = gpu_slots(machine);
  const bool own = job.tasks_have_gpus && names.size() == 1;
  if (!job.oversubscribe && !own) check_gpu_slots(job.slots, machine);
  std::vector<std::string> shown;
  for (const int slot : job.slots) {
    const std::string& name = names[static_cast<std::size_t>(slot) % names.size()];
    if (std::ranges::find(shown, name) == shown.end()) shown.push_back(name);
  }
  const std::string devices = fmt::format("{}", fmt::join(shown, ","));
  for (RankSpec& rank : job.ranks) rank.env.push_back({"CUDA_VISIBLE_DEVICES", devices});
}

/// Runs the command through a shell that sources the script, its first argument, and becomes the
/// rest.
void source_first(JobSpec& job) {
  std::error_code ignored;
  if (access(job.venv_script.c_str(), R_OK) != 0 ||
      !std::filesystem::is_regular_file(job.venv_script, ignored)) {
    fail(ErrorCode::remote, "--venv_script {}: not a readable file on this host", job.venv_script);
  }
  Command& command = job.command;
  command.argv.front() = command.program;
  command.program = find_on_path("bash");  // most such scripts are written for it
  if (command.program.empty()) command.program = find_on_path("sh");
  const std::vector<std::string> shell{command.program, "-c", source_and_become, command.program,
                                       job.venv_script};
  command.argv.insert(command.argv.begin(), shell.begin(), shell.end());
  if (command.local_rank_position) *command.local_rank_position += shell.size();
}

/// The core binding of each rank of the node, by local rank; empty: none. Throws Error if they
/// cannot be bound.
std::vector<CoreBinding> bind_ranks(const JobSpec& job) {
  if (!job.bind_cores) return {};
  const bool in_job = std::ranges::find(job.env, "KMP_AFFINITY", &EnvVar::name) != job.env.end();
  if (in_job || std::getenv("KMP_AFFINITY") != nullptr) {
    fail(ErrorCode::usage, "--bind_cores_to_rank: KMP_AFFINITY binds threads too; unset it");
  }
  return bind_cores(job.core_list, static_cast<int>(job.slots.size()));
}

/// Adapts a job that was planned on another machine to this node: its own daemon, its GPUs, the
/// directory of its log files, the shell that sources --venv_script. Returns a warning, or nothing.
/// Throws Error if the node lacks something.
std::string fit_job_to_node(JobSpec& job) {
  const Machine machine = this_machine();
  if (job.command.daemon) {
    job.command.program = find_daemon();
    job.command.argv.front() = job.command.program;
  }
  assign_gpus(job, machine);
  if (!job.log_files.empty()) {
    make_log_directory(std::filesystem::path(job.log_files.front()).parent_path());
  }
  if (!job.venv_script.empty()) source_first(job);
  const auto ranks = static_cast<int>(job.slots.size());
  const bool gpus = job.use_gpus && usable_gpus(machine) > 0;
  const bool first_of_node = job.ranks.front().local_rank == 0;  // one agent per node warns
  if (gpus || job.oversubscribe || ranks <= machine.cores || !first_of_node) return "";
  return fmt::format("{} CPU ranks share {} cores. Pass --oversubscribe to silence this warning",
                     ranks, machine.cores);
}

}  // namespace

void NodeRanks::start(JobSpec job, const sigset_t& signal_mask, UniqueFd listener) {
  has_children_ = true;
  if (job.reports_progress) messages_.report_first();
  watch_.start(job.look_milliseconds / 1000.0);
  std::vector<CoreBinding> bindings;
  try {
    const std::string warning = fit_job_to_node(job);
    if (!warning.empty()) sender_.note(warning);
    bindings = bind_ranks(job);
  } catch (const Error& error) {
    return sender_.refused(job.ranks.front().rank, error.what());
  }
  start_ranks(job, bindings, signal_mask, listener);
}

void NodeRanks::start_ranks(const JobSpec& job,
                            const std::vector<CoreBinding>& bindings,
                            const sigset_t& signal_mask,
                            const UniqueFd& listener) {
  const UniqueFd null_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_fd) fail_errno(errno, "open /dev/null");
  const AgentRank::Context context{job,           usable_cores(), bindings,
                                   null_fd.get(), listener.get(), signal_mask};
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    try {
      ranks_.push_back(AgentRank::start(context, i));
    } catch (const Error& error) {
      return sender_.refused(job.ranks[i].rank, error.what());
    }
    sender_.started(job.ranks[i].rank, ranks_.back().pid());
  }
}

void NodeRanks::signal(int number) const {
  for (const AgentRank& rank : ranks_) rank.signal(number);
}

bool NodeRanks::any_runs() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const AgentRank& r) { return r.running(); });
}

void NodeRanks::read_rank(AgentRank& rank, OutputStream stream, std::size_t bytes_max) {
  rank.read_output(stream, bytes_max, [&](OutputStream from, std::string_view bytes) {
    sender_.output({rank.rank(), from, bytes});
  });
  if (!rank.take_log_failure()) return;
  sender_.note(fmt::format("cannot write the log file of rank {} any more", rank.rank()));
}

/// A pipe never holds more than drain_bytes_max.
void NodeRanks::drain(AgentRank& rank) {
  read_rank(rank, OutputStream::out, drain_bytes_max);
  read_rank(rank, OutputStream::err, drain_bytes_max);
}

void NodeRanks::add_polls(std::vector<pollfd>& fds) {
  polled_ranks_ = sender_.may_output() ? ranks_.size() : 0;
  for (std::size_t i = 0; i < polled_ranks_; ++i) {
    fds.push_back({ranks_[i].fd(OutputStream::out), POLLIN, 0});
    fds.push_back({ranks_[i].fd(OutputStream::err), POLLIN, 0});
  }
  messages_.add_polls(fds);
  stacks_.add_polls(fds);
}

void NodeRanks::read(std::span<const pollfd> fds) {
  // A rank started just now has no entry yet.
  for (std::size_t i = 0; i < polled_ranks_; ++i) {
    for (const OutputStream stream : {OutputStream::out, OutputStream::err}) {
      const pollfd& polled = fds[2 * i + static_cast<std::size_t>(stream)];
      if (polled.revents != 0) read_rank(ranks_[i], stream, 1);
    }
  }
  messages_.pass_on();
  stacks_.tick();
  watch_.tick(stacks_.under_way() ? RankWatch::Sight::traced : RankWatch::Sight::clear);
}

std::optional<double> NodeRanks::deadline() const {
  std::optional<double> next;
  for (const auto& due : {messages_.deadline(), stacks_.deadline(), watch_.deadline()}) {
    if (due) next = std::min(next.value_or(*due), *due);
  }
  return next;
}

void NodeRanks::finish() {
  for (AgentRank& rank : ranks_) {
    drain(rank);
    rank.finish_log();
  }
}

/// `used`: the kernel's accounting of the rank.
KillCause NodeRanks::cause_of(int wait_status, const rusage& used) {
  const int signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
  if (signal != SIGKILL && signal != SIGXCPU) return KillCause::none;
  rlimit limit{};  // ranks inherit it: SIGXCPU comes at the lower one, SIGKILL at the other
  const auto spent = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1;
  const bool known = ::getrlimit(RLIMIT_CPU, &limit) == 0;
  const rlim_t most = signal == SIGKILL ? limit.rlim_max : limit.rlim_cur;
  if (known && most != RLIM_INFINITY && spent >= most) return KillCause::cpu_time;
  return signal == SIGKILL ? oom_.verdict() : KillCause::none;
}

void NodeRanks::rank_ended(AgentRank& rank, int wait_status, const rusage& used) {
  rank.mark_ended();
  drain(rank);  // its output must precede its end
  messages_.rank_ended(rank);
  sender_.exited({rank.rank(), wait_status, cause_of(wait_status, used)});
}

void NodeRanks::reap(pid_t which) {
  for (;;) {
    int wait_status = 0;
    rusage used{};
    const pid_t pid = ::wait4(which, &wait_status, WNOHANG, &used);
    if (pid < 0 && errno == EINTR) continue;
    if (which < 0 && pid <= 0) has_children_ = pid == 0;
    if (pid <= 0) return;
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(), [pid](const AgentRank& r) {
      return r.running() && r.pid() == pid;
    });
    if (rank != ranks_.end()) rank_ended(*rank, wait_status, used);
    if (which > 0) return;
  }
}

}  // namespace dstrain::launcher
