// The agent of a node alone: this test has the launcher's end of its frames.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include <sys/stat.h>

#include <fmt/format.h>

#include "launcher/hosts/host_agent.h"
#include "launcher/hosts/process_link.h"
#include "launcher/job/supervisor.h"
#include "launcher/plan/job_env.h"
#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using launcher::FromAgent;
using launcher::ToAgent;
namespace fs = std::filesystem;

namespace {

/// Its marker is in the environment of all that it starts, by which the destructor finds it.
class TestAgent {
 public:
  TestAgent() {
    sigset_t none;
    sigemptyset(&none);
    host_ = std::make_unique<launcher::HostAgent>(
        task_, std::make_unique<launcher::ProcessLink>(
                   launcher::ProcessLink::Settings{.program = DSTRAIN_PROGRAM,
                                                   .argv = {"dstrain", "agent"},
                                                   .env = {{"DSTRAIN_TEST_MARKER", marker_}},
                                                   .keep_notes = true,
                                                   .signal_mask = none}));
  }
  TestAgent(const TestAgent&) = delete;
  TestAgent& operator=(const TestAgent&) = delete;
  ~TestAgent() {
    for (auto left = processes(); !left.empty(); left = processes()) {
      for (const pid_t pid : left) kill(pid, SIGKILL);
      test::wait_for_end(left.front(), Deadline::after(test::hang_seconds));
    }
  }

  launcher::JobSpec job(int ranks, const std::string& script) const {
    launcher::JobSpec spec;
    spec.working_directory = folder().string();
    spec.command = {"/bin/sh", {"sh", "-c", script}, std::nullopt, false};
    spec.oversubscribe = true;
    for (int rank = 0; rank < ranks; ++rank) {
      spec.ranks.push_back({rank, rank, {{"RANK", std::to_string(rank)}}});
      spec.slots.push_back(rank);
    }
    return spec;
  }
  void start(const launcher::JobSpec& spec) {
    task_.spec = spec;
    host_->send(ToAgent::job, launcher::encode_job(spec));
  }
  void start(int ranks, const std::string& script) { start(job(ranks, script)); }
  /// To the ranks.
  void signal(int number) {
    launcher::WireWriter out;
    out.i32(number);
    host_->send(ToAgent::signal, out.take());
  }
  /// The launcher's: it will not be silent for so long.
  void beat(std::uint32_t silence_milliseconds) {
    launcher::WireWriter out;
    out.u32(silence_milliseconds);
    host_->send(ToAgent::beat, out.take());
  }
  void tell(int rank, const std::string& text) {
    host_->send(ToAgent::rank_message, launcher::encode_rank_message({rank, text}));
  }

  bool wait_until(const std::function<bool()>& condition) {
    const Deadline deadline = Deadline::after(test::hang_seconds);
    while (!condition()) {
      if (ended || deadline.passed()) return false;
      turn();
    }
    return true;
  }
  bool wait_for_output(int rank, const std::string& text) {
    return wait_until([&] { return output[rank].find(text) != std::string::npos; });
  }
  bool wait_for_exit(int rank) {
    return wait_until([&] { return status.contains(rank); });
  }
  bool wait_for_finish() {
    return wait_until([&] { return finished; });
  }
  /// The launcher is gone.
  void hang_up() {
    host_.reset();
    ended = true;
  }
  bool wait_for_end() {
    return wait_until([&] { return ended; });
  }
  std::string end_reason() { return host_->end_reason(); }

  [[nodiscard]] const fs::path& folder() const { return folder_.path(); }
  [[nodiscard]] std::vector<pid_t> processes() const {
    return test::processes_with("DSTRAIN_TEST_MARKER=" + marker_);
  }

  std::map<int, std::string> output;
  std::map<int, pid_t> pids;
  std::map<int, int> status;  ///< as a shell shows it
  std::map<int, std::string> refusals;
  std::vector<std::string> notes;
  bool greeted = false;
  int stop_signal = 0;  ///< that has come to it
  bool finished = false;
  bool ended = false;
  std::string output_at_exit;  ///< of the rank that ended last, when that was told

 private:
  void turn() {
    constexpr int look_milliseconds = 20;  // again, at what the agent does not tell
    host_->flush();
    std::vector<pollfd> fds;
    host_->add_polls(fds);
    poll(fds.data(), fds.size(), look_milliseconds);
    ended = !host_->receive(fds, [this](const launcher::Frame& frame) { take(frame); });
  }
  void take(const launcher::Frame& frame) {
    launcher::WireReader in(frame.payload);
    switch (static_cast<FromAgent>(frame.type)) {
      case FromAgent::output: {
        const launcher::Output came = launcher::decode_output(frame.payload);
        output[came.rank] += came.bytes;
        return;
      }
      case FromAgent::started: {
        const int rank = in.i32();
        pids[rank] = in.i32();
        return;
      }
      case FromAgent::exited: {
        const launcher::Exit exit = launcher::decode_exit(frame.payload);
        status[exit.rank] = launcher::shell_status(exit.wait_status);
        output_at_exit = output[exit.rank];
        return;
      }
      case FromAgent::refused: {
        const int rank = in.i32();
        refusals[rank] = in.string();
        return;
      }
      case FromAgent::note:
        notes.emplace_back(in.string());
        return;
      case FromAgent::hello:
        greeted = true;
        return;
      case FromAgent::stop:
        stop_signal = in.i32();
        return;
      case FromAgent::finished:
        finished = true;
        return;
      default:
        return;
    }
  }

  test::TempDir folder_;
  std::string marker_ = launcher::random_hex(8);
  launcher::HostTask task_{"here", true, {}};
  std::unique_ptr<launcher::HostAgent> host_;
};

std::string proc_text(pid_t pid, const std::string& file) {
  std::ifstream in(fmt::format("/proc/{}/{}", pid, file), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The hexadecimal number of a line like "SigBlk:\t0000000000010000".
std::uint64_t signals_in(const std::string& status, const std::string& line) {
  const std::size_t at = status.find(line + ":");
  REQUIRE(at != std::string::npos);
  return std::stoull(status.substr(at + line.size() + 1), nullptr, 16);
}

constexpr std::uint64_t bit_of(int signal) {
  return 1ULL << (signal - 1);
}

bool is_stopped(pid_t pid) {
  const std::string status = proc_text(pid, "status");
  return status.find("State:\tT") != std::string::npos;
}

/// Stops it and waits until it is.
bool stop(pid_t pid) {
  kill(pid, SIGSTOP);
  return test::look_until(pid, [pid] { return is_stopped(pid); });
}

/// Nothing of it runs any more; who is dead and not yet reaped counts as gone.
bool is_gone(pid_t pid) {
  const std::string status = proc_text(pid, "status");
  return status.empty() || status.find("State:\tZ") != std::string::npos;
}

/// The number after `word` in what a rank has printed.
pid_t number_after(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word + " ");
  REQUIRE(at != std::string::npos);
  return std::atoi(text.c_str() + at + word.size() + 1);
}

int times_in(const std::string& text, const std::string& word) {
  int times = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++times;
  return times;
}

/// Waits, when asked to end, until its child has ended, and tells so. The child speaks for itself:
/// before it is another program it has its parent's trap.
const std::string parent =
    "trap 'wait; exit 3' TERM; sh -c 'echo child $$.; exec sleep 1000' & wait";

}  // namespace

TEST_CASE("Agent: a stop reaches the whole group of a rank", "[e2e][agent]") {
  TestAgent agent;
  agent.start(2, parent);
  REQUIRE(agent.wait_for_output(0, "."));
  REQUIRE(agent.wait_for_output(1, "."));
  agent.signal(SIGTERM);
  REQUIRE(agent.wait_for_finish());
  CHECK(agent.status == std::map<int, int>{{0, 3}, {1, 3}});
}

TEST_CASE("Agent: a stop wakes the stopped processes of a rank", "[e2e][agent]") {
  TestAgent agent;
  agent.start(1, parent);
  REQUIRE(agent.wait_for_output(0, "."));
  REQUIRE(stop(number_after(agent.output[0], "child")));
  if (GENERATE(true, false)) REQUIRE(stop(agent.pids[0]));
  agent.signal(SIGTERM);
  REQUIRE(agent.wait_for_exit(0));
  CHECK(agent.status[0] == 3);
}

TEST_CASE("Agent: what ranks leave running is asked before it is killed", "[e2e][agent]") {
  TestAgent agent;
  REQUIRE(::mkfifo((agent.folder() / "never").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((agent.folder() / "go").c_str(), 0600) == 0);
  agent.start(1,
              "setsid sh -c 'trap \"echo asked >asked; exit\" TERM; exec 3<>never; "
              "echo left $$.; read x <&3' & read x <go");
  REQUIRE(agent.wait_for_output(0, "."));
  if (GENERATE(true, false)) REQUIRE(stop(number_after(agent.output[0], "left")));
  std::ofstream(agent.folder() / "go") << "\n";
  REQUIRE(agent.wait_for_finish());
  CHECK(fs::exists(agent.folder() / "asked"));
  REQUIRE(agent.notes.size() == 1);
  CHECK_THAT(agent.notes.front(),
             Catch::Matchers::ContainsSubstring("ending processes they left running"));
}

TEST_CASE("Agent: processes that ignore the request are killed in the end", "[e2e][agent]") {
  TestAgent agent;
  agent.start(1,
              "trap '' TERM; setsid sh -c 'echo left $$.; exec sleep 1000' & "
              "read x </dev/zero");
  REQUIRE(agent.wait_for_output(0, "."));
  kill(agent.pids[0], SIGKILL);
  REQUIRE(agent.wait_for_finish());
  CHECK(agent.status[0] == 137);
  CHECK(is_gone(number_after(agent.output[0], "left")));
}

TEST_CASE("Agent: the guard ends processes that a killed agent leaves", "[e2e][agent]") {
  TestAgent agent;
  agent.start(2,
              "trap '' TERM; sleep 1001 & setsid sleep 1002 & (setsid sleep 1003 &) & "
              "echo agent $PPID.; wait");
  REQUIRE(agent.wait_for_output(0, "."));
  REQUIRE(agent.wait_for_output(1, "."));
  kill(number_after(agent.output[0], "agent"), SIGKILL);
  REQUIRE(agent.wait_for_end());
  CHECK(test::wait_until_none([&] { return agent.processes(); }));
  CHECK_THAT(agent.end_reason(), Catch::Matchers::ContainsSubstring("ended with status 137"));
}

TEST_CASE("Agent: a stop signal asks the ranks to stop and is reported", "[e2e][agent]") {
  const int number = GENERATE(SIGINT, SIGTERM, SIGHUP, SIGUSR1);
  const bool guard = GENERATE(false, true);
  CAPTURE(number, guard);
  TestAgent agent;
  agent.start(2,
              "trap 'echo asked' TERM; "
              "echo agent $PPID guard $(cut -d ' ' -f 4 /proc/$PPID/stat).; "
              "until test -e go; do sleep 0.05; done; exit 75");
  for (const int rank : {0, 1}) REQUIRE(agent.wait_for_output(rank, "."));
  kill(number_after(agent.output[0], guard ? "guard" : "agent"), number);
  REQUIRE(agent.wait_until([&] { return agent.stop_signal != 0; }));
  CHECK(agent.stop_signal == number);
  const auto asked = [&](int times) {
    return agent.wait_until([&] {
      return std::ranges::all_of(agent.output, [&](const auto& of_rank) {
        return times_in(of_rank.second, "asked") >= times;
      });
    });
  };
  REQUIRE(asked(1));
  agent.signal(SIGTERM);  // the launcher's answer, which repeats what was asked
  agent.signal(SIGTERM);  // this one hurries
  REQUIRE(asked(2));
  std::ofstream(agent.folder() / "go").flush();
  REQUIRE(agent.wait_for_finish());
  CHECK(agent.status == std::map<int, int>{{0, 75}, {1, 75}});
  for (const int rank : {0, 1}) CHECK(times_in(agent.output[rank], "asked") == 2);
}

TEST_CASE("Agent: a stop signal before the job starts is reported with the job", "[e2e][agent]") {
  TestAgent agent;
  REQUIRE(agent.wait_until([&] { return agent.greeted; }));
  const std::vector<pid_t> both = agent.processes();
  REQUIRE(both.size() == 2);
  for (const pid_t pid : both) kill(pid, SIGTERM);
  agent.start(1, "exec sleep 1000");
  REQUIRE(agent.wait_for_finish());
  CHECK(agent.stop_signal == SIGTERM);
  CHECK(agent.status[0] == 143);
}

TEST_CASE("Agent: nothing survives even if agent and guard were suspended", "[e2e][agent]") {
  TestAgent agent;
  agent.start(1, "trap '' TERM; echo agent $PPID.; setsid sleep 1000 & wait");
  REQUIRE(agent.wait_for_output(0, "."));
  const pid_t pid = number_after(agent.output[0], "agent");
  std::vector<pid_t> others = agent.processes();
  std::erase(others, pid);
  const pid_t guard = *std::ranges::min_element(others);
  const bool killed = GENERATE(false, true);
  REQUIRE(stop(guard));
  REQUIRE(stop(pid));
  if (killed) {
    kill(guard, SIGKILL);
  } else {
    agent.hang_up();
  }
  CHECK(test::wait_until_none([&] { return agent.processes(); }));
}

TEST_CASE("Agent: a rank's output is sent before its end is reported", "[e2e][agent]") {
  TestAgent agent;
  launcher::JobSpec job = agent.job(1, "echo last words");
  job.output_window_bytes = 0;  // nothing goes ahead
  agent.start(job);
  REQUIRE(agent.wait_for_exit(0));
  CHECK(agent.output_at_exit == "last words\n");
}

TEST_CASE("Agent: after the first rank that cannot be started no other is started",
          "[e2e][agent]") {
  TestAgent agent;
  launcher::JobSpec job = agent.job(3, "");
  job.command.program = "/nonexistent/program";
  agent.start(job);
  agent.signal(SIGKILL);
  REQUIRE(agent.wait_for_finish());
  REQUIRE(agent.refusals.size() == 1);
  CHECK_THAT(agent.refusals[0], Catch::Matchers::ContainsSubstring("/nonexistent/program"));
}

TEST_CASE("Agent: a message reaches the rank that it is for", "[e2e][agent]") {
  TestAgent agent;
  // Not every sh knows descriptors of two digits.
  agent.start(2, "echo up; exec bash -c 'exec cat <&$DSTRAIN_CONTROL_FD'");
  for (const int rank : {0, 1}) REQUIRE(agent.wait_for_output(rank, "up"));
  agent.tell(1, "save 7.");
  REQUIRE(agent.wait_for_output(1, "save 7."));
  agent.tell(0, "save 8.");
  REQUIRE(agent.wait_for_output(0, "save 8."));
  CHECK(agent.output[0] == "up\nsave 8.");
  CHECK(agent.output[1] == "up\nsave 7.");
}

TEST_CASE("Agent: a rank begins with the signals of a shell's child", "[e2e][agent]") {
  TestAgent agent;
  agent.start(1, "exec cat /proc/self/status");
  REQUIRE(agent.wait_for_exit(0));
  CHECK(signals_in(agent.output[0], "SigBlk") == 0);
  CHECK((signals_in(agent.output[0], "SigIgn") & bit_of(SIGPIPE)) == 0);
}

TEST_CASE("Agent: a silent launcher counts as gone", "[e2e][agent]") {
  TestAgent agent;
  agent.start(1, "trap '' TERM; setsid sleep 1000 & wait");
  REQUIRE(agent.wait_until([&] { return agent.pids.contains(0); }));
  agent.beat(300);
  REQUIRE(agent.wait_for_end());
  CHECK(test::wait_until_none([&] { return agent.processes(); }));
}

TEST_CASE("Agent: a second job is refused", "[e2e][agent]") {
  TestAgent agent;
  agent.start(1, "exec sleep 1000");
  agent.start(1, "exec sleep 1000");
  REQUIRE(agent.wait_for_end());
  CHECK(test::wait_until_none([&] { return agent.processes(); }));
  CHECK_THAT(agent.end_reason(), Catch::Matchers::ContainsSubstring("a second job"));
}
