#include "launcher/process/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/process/signals.h"
#include "runtime/base/error.h"
#include "runtime/base/exception_text.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {
namespace {

enum class Stage : int { setup, directory, execute };

/// The child's message to its parent if it cannot execute the program.
struct ChildFailure {
  Stage stage;
  int error;
};

/// Bits as the kernel takes them; none set: empty.
using BitMask = std::vector<unsigned long>;

BitMask mask_of(const std::vector<int>& bits) {
  constexpr std::size_t word_bits = sizeof(unsigned long) * 8;
  BitMask mask;
  for (const int bit : bits) {
    const auto at = static_cast<std::size_t>(bit);
    if (mask.size() <= at / word_bits) mask.resize(at / word_bits + 1);
    mask[at / word_bits] |= 1UL << (at % word_bits);
  }
  return mask;
}

/// Everything the child needs, made before the fork: after it only async-signal-safe calls are
/// allowed, and none of these allocates.
struct Prepared {
  std::vector<std::string> env_texts;
  std::vector<char*> argv;
  std::vector<char*> envp;
  BitMask cpus;
  BitMask memory_nodes;
  pid_t parent = 0;
};

Prepared prepare(const ProcessSpec& spec) {
  Prepared prepared;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    bool replaced = false;
    for (const EnvVar& variable : spec.env) {
      replaced |= text.size() > variable.name.size() && text.starts_with(variable.name) &&
                  text[variable.name.size()] == '=';
    }
    if (!replaced) prepared.env_texts.emplace_back(text);
  }
  for (const EnvVar& variable : spec.env) {
    prepared.env_texts.push_back(variable.name + "=" + variable.value);
  }
  for (const std::string& text : prepared.env_texts) {
    prepared.envp.push_back(const_cast<char*>(text.c_str()));
  }
  for (const std::string& text : spec.argv) {
    prepared.argv.push_back(const_cast<char*>(text.c_str()));
  }
  prepared.envp.push_back(nullptr);
  prepared.argv.push_back(nullptr);
  prepared.cpus = mask_of(spec.cpus);
  prepared.memory_nodes = mask_of(spec.memory_nodes);
  prepared.parent = getpid();
  return prepared;
}

[[noreturn]] void give_up(int report_fd, Stage reached) {
  const ChildFailure failure{reached, errno};
  // Nothing can be done about a failing write: the parent then sees the exit status.
  if (write(report_fd, &failure, sizeof failure) < 0) _exit(126);
  _exit(127);
}

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool redirect(int from, int to) {
  return from < 0 || dup2(from, to) >= 0;
}

bool keep_open(const std::vector<int>& fds) {
  return std::ranges::all_of(fds, [](int fd) { return fcntl(fd, F_SETFD, 0) == 0; });
}

/// Plain system calls: a C library may do more.
bool bind(const Prepared& prepared) {
  constexpr int mempolicy_bind = 2;  // MPOL_BIND of <linux/mempolicy.h>
  const BitMask& cpus = prepared.cpus;
  const BitMask& nodes = prepared.memory_nodes;
  const std::size_t node_bits = nodes.size() * sizeof(unsigned long) * 8;
  return (cpus.empty() || syscall(SYS_sched_setaffinity, 0, cpus.size() * sizeof(unsigned long),
                                  cpus.data()) == 0) &&
         (nodes.empty() ||
          syscall(SYS_set_mempolicy, mempolicy_bind, nodes.data(), node_bits + 1) == 0);
}

/// Runs in the child.
[[noreturn]] void execute(const ProcessSpec& spec, const Prepared& prepared, int report_fd) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) {  // whatever this process or its parent ignores
    if (signal != SIGHUP) sigaction(signal, &action, nullptr);  // nohup is for all of a job
  }
  sigprocmask(SIG_SETMASK, &spec.signal_mask, nullptr);
  if (spec.new_session ? setsid() < 0 : setpgid(0, 0) != 0) give_up(report_fd, Stage::setup);
  if (!bind(prepared)) give_up(report_fd, Stage::setup);
  if (spec.traceable) prctl(PR_SET_PTRACER, prepared.parent);  // fails where there is no Yama
  if (spec.ignores_stops) set_stop_signals(SIG_IGN);
  if (spec.parent_death_signal != 0) {
    if (prctl(PR_SET_PDEATHSIG, spec.parent_death_signal) != 0) give_up(report_fd, Stage::setup);
    if (getppid() != prepared.parent)
      _exit(127);  // the parent died before prctl: no signal will come
  }
  if (!redirect(spec.stdin_fd, STDIN_FILENO) || !redirect(spec.stdout_fd, STDOUT_FILENO) ||
      !redirect(spec.stderr_fd, STDERR_FILENO) || !keep_open(spec.inherited_fds)) {
    give_up(report_fd, Stage::setup);
  }
  if (!spec.working_directory.empty() && chdir(spec.working_directory.c_str()) != 0) {
    give_up(report_fd, Stage::directory);
  }
  execve(spec.program.c_str(), prepared.argv.data(), prepared.envp.data());
  give_up(report_fd, Stage::execute);
}

Failure explain(const ProcessSpec& spec, const ChildFailure& failure) {
  const char* const reason = std::strerror(failure.error);
  switch (failure.stage) {
    case Stage::directory:
      return {fmt::format("cannot enter {}: {}", spec.working_directory, reason)};
    case Stage::execute:
      if (failure.error == ENOEXEC) {
        return {fmt::format("{}: not a program; a script starts with a line like #!/bin/sh",
                            spec.program)};
      }
      return {fmt::format("{}: {}", spec.program, reason)};
    case Stage::setup:
      break;
  }
  return {fmt::format("cannot prepare a process for {}: {}", spec.program, reason)};
}

}  // namespace

bool is_env_name(std::string_view name) {
  return !name.empty() && starts_name(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return starts_name(c) || (c >= '0' && c <= '9'); });
}

void set_env(std::vector<EnvVar>& variables, std::string_view name, std::string_view value) {
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const EnvVar& variable) { return variable.name == name; });
  if (found != variables.end()) {
    found->value = value;
  } else {
    variables.push_back({std::string(name), std::string(value)});
  }
}

Result<pid_t> start_process(const ProcessSpec& spec) {
  const Prepared prepared = prepare(spec);
  std::array<int, 2> pipe_fds{};
  if (pipe2(pipe_fds.data(), O_CLOEXEC) != 0) {
    return Failure{fmt::format("cannot make a pipe: {}", std::strerror(errno))};
  }
  const UniqueFd report(pipe_fds[0]);
  UniqueFd child_report(pipe_fds[1]);
  const pid_t pid = fork();
  if (pid < 0) return Failure{why_no_process(errno)};
  if (pid == 0) execute(spec, prepared, child_report.get());
  child_report.reset();
  ChildFailure failure{};
  ssize_t got = 0;
  do {
    got = read(report.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return pid;
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return explain(spec, failure);
}

std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

int shell_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string describe_end(int wait_status) {
  return WIFSIGNALED(wait_status)
             ? fmt::format("was killed by {}", signal_name(WTERMSIG(wait_status)))
             : fmt::format("ended with status {}", WEXITSTATUS(wait_status));
}

}  // namespace dstrain::launcher
