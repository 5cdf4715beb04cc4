#include "launcher/process/children.h"

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "launcher/process/pipes.h"
#include "launcher/process/process.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;

namespace {

constexpr int minute_milliseconds = 60'000;  // never reached

/// `cat`, which ends when its input does; killed and reaped at the end of the scope.
class Cat {
 public:
  Cat() {
    PipeEnds pipe = make_pipe();
    ProcessSpec spec;
    spec.program = "/bin/cat";
    spec.argv = {"cat"};
    spec.stdin_fd = pipe.read.get();
    sigemptyset(&spec.signal_mask);
    pid_ = start_process(spec).value();
    input_ = std::move(pipe.write);
  }
  Cat(const Cat&) = delete;
  Cat& operator=(const Cat&) = delete;
  ~Cat() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void end() { input_.reset(); }
  /// Looks without reaping.
  [[nodiscard]] bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }

 private:
  pid_t pid_ = 0;
  UniqueFd input_;
};

}  // namespace

TEST_CASE("Children: waiting ends with the first of them", "[launcher]") {
  Cat stays;
  Cat ends;
  const std::vector<pid_t> children{stays.pid(), ends.pid()};
  wait_for_any_end(children, 1);
  CHECK_FALSE(stays.has_ended());
  CHECK_FALSE(ends.has_ended());
  ends.end();
  wait_for_any_end(children, minute_milliseconds);
  CHECK(ends.has_ended());
  CHECK_FALSE(stays.has_ended());
  // One that ended before, and was not reaped, is no reason to wait.
  wait_for_any_end(children, minute_milliseconds);
  CHECK(ends.has_ended());
}

TEST_CASE("Children: a job leaves excluded and earlier children alone", "[launcher]") {
  Cat before;
  JobChildren children("some-job");
  Cat excluded;
  Cat other;
  children.exclude(excluded.pid());
  std::vector<pid_t> ended;
  children.kill_all([&](pid_t pid, int) { ended.push_back(pid); });
  CHECK(ended.empty());  // beside others only what carries the job's mark is its own
  CHECK_FALSE(before.has_ended());
  CHECK_FALSE(excluded.has_ended());
  CHECK_FALSE(other.has_ended());
}

TEST_CASE("Children: a job kills and reaps all of its remaining children", "[launcher]") {
  JobChildren children("some-job");
  Cat excluded;
  children.exclude(excluded.pid());
  const pid_t left = fork();
  REQUIRE(left >= 0);
  if (left == 0) {
    for (;;) pause();
  }
  std::vector<std::pair<pid_t, int>> ended;
  children.kill_all([&](pid_t pid, int status) { ended.emplace_back(pid, shell_status(status)); });
  CHECK(ended == std::vector<std::pair<pid_t, int>>{{left, 128 + SIGKILL}});
  CHECK_FALSE(excluded.has_ended());
}
