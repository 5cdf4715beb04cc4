#include "launcher/agent.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include <fmt/ranges.h>

#include "launcher/agent_job.h"
#include "launcher/agent_rank.h"
#include "launcher/children.h"
#include "launcher/frame_pipe.h"
#include "launcher/machine.h"
#include "launcher/oom_watch.h"
#include "launcher/port.h"
#include "launcher/protocol.h"
#include "launcher/rank_news.h"
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
/// SIGUSR1 is for the ranks alone; the others mean that whoever started the agent wants it gone.
constexpr std::array<int, 5> watched_signals{SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGUSR1};

class Agent {
 public:
  Agent() { become_subreaper(); }
  int run(std::string_view version);

 private:
  enum class Phase {
    idle,      ///< no job yet
    running,   ///< at least one rank runs
    settling,  ///< all ranks ended, other processes of the job did not
    ending,    ///< those got SIGTERM
    killing,   ///< everything gets SIGKILL until nothing is left
  };

  void say_hello(std::string_view version);
  void reserve(const PortRequest& request);
  void start_job(std::string_view payload);
  void start_ranks(const JobSpec& job);
  void refuse(int rank, const char* reason);
  void note(const std::string& text);
  void keep_beating();
  void handle(const Frame& frame);
  void poll_once();
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
  std::vector<CoreBinding> bindings_;
  std::vector<AgentRank> ranks_;
  RankNews news_{ranks_, launcher_, clock_};
  Phase phase_ = Phase::idle;
  double deadline_ = 0;
  std::set<pid_t> asked_;
  ReservedPort port_;
  double silence_seconds_ = 0;  ///< 0: no beats are expected
  double heard_ = 0;
  double next_beat_ = 0;
  std::size_t unacknowledged_ = 0;
  std::size_t window_bytes_ = 0;
  bool has_children_ = false;
  bool launcher_gone_ = false;
};

bool Agent::ranks_run() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const AgentRank& r) { return r.running(); });
}

void Agent::say_hello(std::string_view version) {
  Hello hello;
  hello.version = version;
  // sshd sets it: client address, client port, server address, server port.
  const char* const connection = std::getenv("SSH_CONNECTION");
  std::istringstream words(connection != nullptr ? connection : "");
  std::string port;
  words >> hello.peer_address >> port >> hello.own_address;
  launcher_.send_preamble();
  launcher_.send(FromAgent::hello, encode_hello(hello));
}

void Agent::reserve(const PortRequest& request) {
  WireWriter answer;
  try {
    port_ = request.exactly ? reserve_port(request.port) : reserve_free_port(request.port);
    answer.i32(port_.port);
  } catch (const Error& error) {
    answer.i32(0);
    answer.string(error.what());
  }
  launcher_.send(FromAgent::port, answer.take());
}

void Agent::note(const std::string& text) {
  WireWriter note;
  note.string(text);
  launcher_.send(FromAgent::note, note.take());
}

void Agent::refuse(int rank, const char* reason) {
  WireWriter news;
  news.i32(rank);
  news.string(reason);
  launcher_.send(FromAgent::refused, news.take());
}

void Agent::start_job(std::string_view payload) {
  JobSpec job = decode_job(payload);
  if (phase_ != Phase::idle) fail(ErrorCode::remote, "agent protocol: a second job");
  phase_ = Phase::running;
  has_children_ = true;
  window_bytes_ = job.output_window_bytes;
  try {
    const std::string warning = fit_job_to_node(job);
    if (!warning.empty()) note(warning);
    bindings_ = bind_ranks(job);
  } catch (const Error& error) {
    return refuse(job.ranks.front().rank, error.what());
  }
  start_ranks(job);
}

void Agent::start_ranks(const JobSpec& job) {
  const UniqueFd null_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_fd) fail_errno(errno, "open /dev/null");
  const AgentRank::Context context{job, usable_cores(), bindings_, null_fd.get(),
                                   signals_.previous_mask()};
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    try {
      ranks_.push_back(AgentRank::start(context, i));
    } catch (const Error& error) {
      return refuse(job.ranks[i].rank, error.what());
    }
    WireWriter news;
    news.i32(job.ranks[i].rank);
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
    case ToAgent::tell:
      return news_.tell(frame.payload);
    case ToAgent::port:
      return reserve(decode_port_request(frame.payload));
    case ToAgent::beat:
      silence_seconds_ = in.u32() / 1000.0;
      return;
  }
  fail(ErrorCode::remote, "agent protocol: unknown frame type {}", frame.type);
}

void Agent::read_rank(AgentRank& rank, OutputStream stream, std::size_t bytes_max) {
  rank.read_output(stream, bytes_max, [&](OutputStream from, std::string_view bytes) {
    unacknowledged_ += bytes.size();
    launcher_.send(FromAgent::output, encode_output({rank.rank(), from, bytes}));
  });
  if (!rank.take_log_failure()) return;
  note(fmt::format("the log file of rank {} cannot be written any more", rank.rank()));
}

void Agent::rank_ended(AgentRank& rank, int wait_status) {
  rank.mark_ended();
  // What it wrote belongs before the news of its end. A pipe holds no more than this at once.
  read_rank(rank, OutputStream::out, drain_bytes_max);
  read_rank(rank, OutputStream::err, drain_bytes_max);
  news_.rank_ended(rank);
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
    if (signal->number == SIGCHLD) {
      if (signal->pid > 0) reap(signal->pid);
    } else if (signal->number != SIGUSR1) {
      launcher_gone_ = true;
    }
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
    note(fmt::format("all ranks have ended; ending processes they left running (pid {})",
                     fmt::join(list_children(), ", ")));
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

/// Beats in its turn, and takes a launcher that fell silent for gone.
void Agent::keep_beating() {
  if (silence_seconds_ == 0) return;
  const double now = clock_.now_seconds();
  launcher_gone_ |= now > heard_ + silence_seconds_;
  if (now < next_beat_) return;
  next_beat_ = now + silence_seconds_ / beats_per_silence;
  launcher_.send(FromAgent::beat, "");
}

int Agent::poll_milliseconds() const {
  if (phase_ == Phase::killing) return static_cast<int>(sweep_seconds * 1000);
  const bool timed = phase_ == Phase::settling || phase_ == Phase::ending;
  double next = timed ? deadline_ : std::numeric_limits<double>::infinity();
  if (silence_seconds_ > 0) next = std::min(next, next_beat_);
  next = std::min(next, news_.deadline().value_or(next));
  if (std::isinf(next)) return -1;
  return std::max(0, static_cast<int>((next - clock_.now_seconds()) * 1000) + 1);
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
  const std::size_t polled_ranks = unacknowledged_ < window_bytes_ ? ranks_.size() : 0;
  for (std::size_t i = 0; i < polled_ranks; ++i) {
    fds.push_back({ranks_[i].fd(OutputStream::out), POLLIN, 0});
    fds.push_back({ranks_[i].fd(OutputStream::err), POLLIN, 0});
  }
  news_.add_polls(fds);
  if (poll(fds.data(), fds.size(), poll_milliseconds()) < 0 && errno != EINTR) {
    fail_errno(errno, "poll");
  }
  if (fds[0].revents != 0) take_signals();
  reap(-1);
  if (fds[1].revents != 0) {
    heard_ = clock_.now_seconds();
    launcher_gone_ |= !launcher_.receive();
    while (const auto frame = launcher_.next()) handle(*frame);
  }
  // A rank started just now has no entry yet.
  if (polled_ranks > 0 && polled_ranks == ranks_.size()) read_ranks(fds, first);
  news_.pass_on();
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

int Agent::run(std::string_view version) {
  say_hello(version);
  try {
    for (;;) {
      poll_once();
      keep_beating();
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

int run_agent(std::string_view version) {
  ignore_broken_pipes();
  return Agent().run(version);
}

}  // namespace dstrain::launcher
