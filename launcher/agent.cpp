#include "launcher/agent.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include <fmt/ranges.h>

#include "launcher/agent_rank.h"
#include "launcher/children.h"
#include "launcher/frame_pipe.h"
#include "launcher/machine.h"
#include "launcher/oom_watch.h"
#include "launcher/protocol.h"
#include "launcher/signals.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/worker_env.h"

namespace dstrain::launcher {
namespace {

constexpr double settle_seconds = 0.2;   // for helpers that end by themselves after their rank
constexpr double leftover_seconds = 1;   // from SIGTERM to SIGKILL for those that do not
constexpr double sweep_seconds = 0.01;   // between two looks for new orphans while killing
constexpr double hopeless_seconds = 60;  // a process stuck in the kernel does not die
constexpr std::size_t drain_bytes_max = 1U << 20;
constexpr double progress_seconds = 0.05;  // between two words to the launcher about rank 0's steps
constexpr std::array<int, 3> watched_signals{SIGCHLD, SIGTERM, SIGUSR1};

class Agent {
 public:
  Agent() { become_subreaper(); }
  int run();

 private:
  enum class Phase {
    idle,      ///< no job yet
    running,   ///< at least one rank runs
    settling,  ///< all ranks ended, other processes of the job did not
    ending,    ///< those got SIGTERM
    killing,   ///< everything gets SIGKILL until nothing is left
  };

  void start_job(std::string_view payload);
  void handle(const Frame& frame);
  void poll_once();
  void poll_channels(std::vector<pollfd>& fds) const;
  void read_channels();
  [[nodiscard]] bool progress_waits() const;
  void pass_on(AgentRank& rank, RankChannel::Which which);
  void read_ranks(const std::vector<pollfd>& fds, std::size_t first);
  void read_rank(AgentRank& rank, OutputStream stream, std::size_t bytes_max);
  void take_signals();
  void reap(pid_t which);
  void rank_ended(AgentRank& rank, int wait_status);
  void advance();
  void kill_everything();
  void ask_leftovers();
  bool finish();
  int die();
  [[nodiscard]] bool ranks_run() const;
  [[nodiscard]] int poll_milliseconds() const;

  SteadyClock clock_;
  SignalSource signals_{watched_signals};
  FramePipe launcher_{{STDIN_FILENO, STDOUT_FILENO}};
  OomWatch oom_;
  std::vector<AgentRank> ranks_;
  Phase phase_ = Phase::idle;
  double deadline_ = 0;
  std::set<pid_t> asked_;
  std::size_t unacknowledged_ = 0;
  double next_progress_ = 0;
  bool has_children_ = false;
  bool launcher_gone_ = false;
};

bool Agent::ranks_run() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const AgentRank& r) { return r.running(); });
}

void Agent::start_job(std::string_view payload) {
  const JobSpec job = decode_job(payload);
  if (phase_ != Phase::idle) fail(ErrorCode::remote, "agent protocol: a second job");
  const UniqueFd null_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_fd) fail_errno(errno, "open /dev/null");
  phase_ = Phase::running;
  has_children_ = true;
  const AgentRank::Context context{job, usable_cores(), null_fd.get(), signals_.previous_mask()};
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    WireWriter news;
    news.i32(job.ranks[i].rank);
    try {
      ranks_.push_back(AgentRank::start(context, i));
    } catch (const Error& error) {
      news.string(error.what());
      launcher_.send(FromAgent::refused, news.take());
      return;
    }
    news.i32(ranks_.back().pid());
    launcher_.send(FromAgent::started, news.take());
  }
}

void Agent::handle(const Frame& frame) {
  WireReader in(frame.payload);
  switch (static_cast<ToAgent>(frame.type)) {
    case ToAgent::job:
      return start_job(frame.payload);
    case ToAgent::ack:
      unacknowledged_ -= std::min<std::size_t>(unacknowledged_, in.u32());
      return;
    case ToAgent::signal: {
      const int number = in.i32();
      if (number == SIGKILL) {
        phase_ = Phase::killing;
        deadline_ = clock_.now_seconds() + hopeless_seconds;
        return;
      }
      for (const AgentRank& rank : ranks_) rank.signal(number);
      return;
    }
    case ToAgent::tell: {
      const RankMessage message = decode_rank_message(frame.payload);
      for (AgentRank& rank : ranks_) {
        if (rank.rank() == message.rank) rank.channel().send(message.text);
      }
      return;
    }
  }
  fail(ErrorCode::remote, "agent protocol: unknown frame type {}", frame.type);
}

void Agent::poll_channels(std::vector<pollfd>& fds) const {
  for (const AgentRank& rank : ranks_) fds.push_back({rank.channel().fd(), POLLIN, 0});
}

/// Passes answers on at once, and how far rank 0 is as often as anyone could look. Of the others
/// that is of interest when they end.
void Agent::read_channels() {
  const bool due = clock_.now_seconds() >= next_progress_;
  for (AgentRank& rank : ranks_) {
    rank.channel().receive();
    const bool progress = rank.rank() == 0 && due && rank.channel().has_progress();
    if (progress) next_progress_ = clock_.now_seconds() + progress_seconds;
    pass_on(rank, progress ? RankChannel::Which::all : RankChannel::Which::answers);
  }
}

/// Whether there is news of rank 0 that came too soon after the last.
bool Agent::progress_waits() const {
  return !ranks_.empty() && ranks_.front().rank() == 0 && ranks_.front().channel().has_progress();
}

void Agent::pass_on(AgentRank& rank, RankChannel::Which which) {
  for (std::string& text : rank.channel().take(which)) {
    launcher_.send(FromAgent::told, encode_rank_message({rank.rank(), std::move(text)}));
  }
}

void Agent::read_rank(AgentRank& rank, OutputStream stream, std::size_t bytes_max) {
  rank.read_output(stream, bytes_max, [&](OutputStream from, std::string_view bytes) {
    unacknowledged_ += bytes.size();
    launcher_.send(FromAgent::output, encode_output({rank.rank(), from, bytes}));
  });
  if (!rank.take_log_failure()) return;
  WireWriter note;
  note.string(fmt::format("the log file of rank {} cannot be written any more", rank.rank()));
  launcher_.send(FromAgent::note, note.take());
}

void Agent::rank_ended(AgentRank& rank, int wait_status) {
  rank.mark_ended();
  // What it wrote belongs before the news of its end. A pipe holds no more than this at once.
  read_rank(rank, OutputStream::out, drain_bytes_max);
  read_rank(rank, OutputStream::err, drain_bytes_max);
  rank.channel().receive();
  pass_on(rank, RankChannel::Which::all);
  const bool killed = WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
  const OomVerdict oom = killed ? oom_.verdict() : OomVerdict::none;
  launcher_.send(FromAgent::exited, encode_exit({rank.rank(), wait_status, oom}));
}

/// Reaps one child that has ended (-1: any, until there is none).
void Agent::reap(pid_t which) {
  for (;;) {
    int wait_status = 0;
    const pid_t pid = waitpid(which, &wait_status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (which < 0 && pid <= 0) has_children_ = pid == 0;
    if (pid <= 0) return;
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(), [pid](const AgentRank& r) {
      return r.running() && r.pid() == pid;
    });
    if (rank != ranks_.end()) rank_ended(*rank, wait_status);
    if (which > 0) return;
  }
}

void Agent::take_signals() {
  while (const auto signal = signals_.next()) {
    if (signal->number == SIGTERM) launcher_gone_ = true;
    if (signal->number == SIGCHLD && signal->pid > 0) reap(signal->pid);
  }
}

void Agent::kill_everything() {
  for (const AgentRank& rank : ranks_) rank.signal(SIGKILL);
  for (const pid_t child : list_children()) kill(child, SIGKILL);
}

/// SIGTERM once to each; children of those that end come to us and are asked in their turn.
void Agent::ask_leftovers() {
  for (const pid_t child : list_children()) {
    if (!asked_.insert(child).second) continue;
    kill(child, SIGTERM);
    kill(child, SIGCONT);
  }
}

/// Moves on when ranks or leftovers have ended or a deadline has passed.
void Agent::advance() {
  if (phase_ == Phase::idle) return;
  const double now = clock_.now_seconds();
  if (phase_ == Phase::killing) return kill_everything();
  if (ranks_run() || !has_children_) return;
  if (phase_ == Phase::running) {
    phase_ = Phase::settling;
    deadline_ = now + settle_seconds;
  } else if (phase_ == Phase::settling && now >= deadline_) {
    WireWriter note;
    note.string(fmt::format("all ranks have ended; ending processes they left running (pid {})",
                            fmt::join(list_children(), ", ")));
    launcher_.send(FromAgent::note, note.take());
    ask_leftovers();
    phase_ = Phase::ending;
    deadline_ = now + leftover_seconds;
  } else if (phase_ == Phase::ending && now < deadline_) {
    ask_leftovers();
  } else if (phase_ == Phase::ending) {
    phase_ = Phase::killing;
    deadline_ = now + hopeless_seconds;
    kill_everything();
  }
}

int Agent::poll_milliseconds() const {
  switch (phase_) {
    case Phase::idle:
    case Phase::running:
      return progress_waits() ? static_cast<int>(progress_seconds * 1000) : -1;
    case Phase::killing:
      return static_cast<int>(sweep_seconds * 1000);
    default:
      return std::max(0, static_cast<int>((deadline_ - clock_.now_seconds()) * 1000) + 1);
  }
}

void Agent::read_ranks(const std::vector<pollfd>& fds, std::size_t first) {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    for (const OutputStream stream : {OutputStream::out, OutputStream::err}) {
      const pollfd& polled = fds[first + 2 * i + static_cast<std::size_t>(stream)];
      if (polled.revents != 0) read_rank(ranks_[i], stream, 1);
    }
  }
}

void Agent::poll_once() {
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0},
                          {launcher_.read_fd(), POLLIN, 0},
                          {launcher_.pending_bytes() > 0 ? launcher_.write_fd() : -1, POLLOUT, 0}};
  const std::size_t first = fds.size();
  const std::size_t polled_ranks = unacknowledged_ < output_window_bytes ? ranks_.size() : 0;
  for (std::size_t i = 0; i < polled_ranks; ++i) {
    fds.push_back({ranks_[i].fd(OutputStream::out), POLLIN, 0});
    fds.push_back({ranks_[i].fd(OutputStream::err), POLLIN, 0});
  }
  poll_channels(fds);
  if (poll(fds.data(), fds.size(), poll_milliseconds()) < 0 && errno != EINTR) {
    fail_errno(errno, "poll");
  }
  if (fds[0].revents != 0) take_signals();
  reap(-1);
  if (fds[1].revents != 0) {
    launcher_gone_ |= !launcher_.receive();
    while (const auto frame = launcher_.next()) handle(*frame);
  }
  // A rank started just now has no entry yet.
  if (polled_ranks > 0 && polled_ranks == ranks_.size()) read_ranks(fds, first);
  read_channels();
  launcher_gone_ |= !launcher_.flush();
}

/// Sends the rest; false when the launcher has gone meanwhile.
bool Agent::finish() {
  for (AgentRank& rank : ranks_) {
    read_rank(rank, OutputStream::out, drain_bytes_max);
    read_rank(rank, OutputStream::err, drain_bytes_max);
    rank.finish_log();
  }
  launcher_.send(FromAgent::finished, "");
  while (launcher_.flush() && launcher_.pending_bytes() > 0) {
    pollfd one{launcher_.write_fd(), POLLOUT, 0};
    if (poll(&one, 1, -1) < 0 && errno != EINTR) return false;
  }
  return launcher_.pending_bytes() == 0;
}

/// The launcher is gone: nobody is left to ask or to tell.
int Agent::die() {
  const double hopeless = clock_.now_seconds() + hopeless_seconds;
  for (reap(-1); has_children_ && clock_.now_seconds() < hopeless; reap(-1)) {
    kill_everything();
    pollfd one{signals_.fd(), POLLIN, 0};
    if (poll(&one, 1, static_cast<int>(sweep_seconds * 1000)) > 0) take_signals();
  }
  return status::failed;
}

int Agent::run() {
  WireWriter hello;
  hello.u32(protocol_version);
  launcher_.send(FromAgent::hello, hello.take());
  try {
    for (;;) {
      poll_once();
      if (launcher_gone_) return die();
      advance();
      const bool hopeless = phase_ == Phase::killing && clock_.now_seconds() > deadline_;
      if (phase_ != Phase::idle && !ranks_run() && (!has_children_ || hopeless)) break;
    }
  } catch (...) {
    die();
    throw;
  }
  return finish() ? status::done : die();
}

}  // namespace

int run_agent() {
  ignore_broken_pipes();
  return Agent().run();
}

}  // namespace dstrain::launcher
