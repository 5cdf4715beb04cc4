#include "launcher/hosts/process_link.h"

#include <cerrno>

#include <sys/wait.h>
#include <unistd.h>

#include "launcher/process/children.h"
#include "launcher/process/pipes.h"
#include "launcher/process/process.h"
#include "launcher/process/program_path.h"
#include "launcher/process/text.h"
#include "launcher/protocol/protocol.h"
#include "runtime/base/deadline.h"
#include "runtime/base/error.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t notes_bytes_max = 4096;
constexpr double end_seconds = 2;  // for the child to end by itself

}  // namespace

ProcessLink::ProcessLink(const Settings& settings)
    : name_(settings.argv.front()), wait_at_end_(settings.wait_at_end) {
  PipeEnds input = make_pipe();
  PipeEnds output = make_pipe();
  PipeEnds notes;
  if (settings.keep_notes) {
    notes = make_pipe();
    make_non_blocking(notes.read.get());
  }
  ProcessSpec spec;
  spec.program = settings.program;
  spec.argv = settings.argv;
  spec.env = settings.env;
  spec.stdin_fd = input.read.get();
  spec.stdout_fd = output.write.get();
  spec.stderr_fd = notes.write.get();
  spec.new_session = true;
  spec.parent_death_signal = SIGCONT;
  spec.ignores_stops = settings.ignores_stops;
  spec.signal_mask = settings.signal_mask;
  const Result<pid_t> pid = start_process(spec);
  if (!pid.ok()) fail(ErrorCode::remote, "cannot start {}: {}", name_, pid.error());
  pid_ = pid.value();
  to_child_ = std::move(input.write);
  from_child_ = std::move(output.read);
  notes_ = std::move(notes.read);
}

ProcessLink::~ProcessLink() {
  to_child_.reset();
  from_child_.reset();
  if (wait_at_end_) wait_for_child();
}

void ProcessLink::read_notes() {
  read_tail(notes_, last_notes_, notes_bytes_max);
}

bool ProcessLink::child_ended(pid_t pid, int wait_status) {
  if (pid != pid_) return false;
  wait_status_ = wait_status;
  return true;
}

void ProcessLink::wait_for_child() {
  const Deadline deadline = Deadline::after(end_seconds);
  bool killed = false;
  while (!wait_status_) {
    int wait_status = 0;
    const pid_t pid = waitpid(pid_, &wait_status, killed ? 0 : WNOHANG);
    if (pid == pid_) {
      wait_status_ = wait_status;
    } else if (pid < 0 && errno != EINTR) {
      return;
    } else if (deadline.passed()) {
      kill(pid_, SIGKILL);
      killed = true;
    } else {
      wait_for_any_end({&pid_, 1}, deadline.remaining_ms());
    }
  }
}

std::string ProcessLink::end_reason() {
  wait_for_child();
  read_notes();
  const std::string end = wait_status_ ? describe_end(*wait_status_) : "has gone";
  const std::string note = last_line(last_notes_);
  return fmt::format("{} (pid {}) {}{}{}", name_, pid_, end, note.empty() ? "" : ": ", note);
}

void ProcessLink::abandon() {
  if (!wait_status_) kill(pid_, SIGKILL);
}

std::unique_ptr<AgentLink> start_local_agent(const std::string& job_id,
                                             const sigset_t& signal_mask) {
  return std::make_unique<ProcessLink>(
      ProcessLink::Settings{.program = own_path(),
                            .argv = {"dstrain", "agent", std::string(watched_agent)},
                            .env = {{env::job, job_id}},
                            .wait_at_end = true,
                            .signal_mask = signal_mask});
}

}  // namespace dstrain::launcher
