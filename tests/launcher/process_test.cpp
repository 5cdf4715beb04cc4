#include "launcher/process/process.h"

#include <array>
#include <csignal>
#include <cstdlib>

#include <sys/wait.h>
#include <unistd.h>

#include "launcher/process/pipes.h"
#include "launcher/process/program_path.h"
#include "launcher/process/signals.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Runs a program to its end; returns what it printed.
std::string printed_by(ProcessSpec spec) {
  PipeEnds out = make_pipe();
  spec.program = program_path(spec.argv.front());
  spec.stdout_fd = out.write.get();
  const Result<pid_t> pid = start_process(spec);
  REQUIRE(pid.ok());
  out.write.reset();
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got = 1; got > 0;) {
    got = ::read(out.read.get(), buffer.data(), buffer.size());
    if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  int wait_status = 0;
  REQUIRE(::waitpid(pid.value(), &wait_status, 0) == pid.value());
  CHECK(wait_status == 0);
  return text;
}

ProcessSpec spec_of(std::vector<std::string> argv) {
  ProcessSpec spec;
  spec.argv = std::move(argv);
  sigemptyset(&spec.signal_mask);
  return spec;
}

}  // namespace

TEST_CASE("Process: a variable replaces only the one with its name", "[launcher]") {
  ::setenv("DSTRAIN_T", "old", 1);
  ::setenv("DSTRAIN_TEST", "other", 1);
  ProcessSpec spec = spec_of({"env"});
  spec.env = {{"DSTRAIN_T", "new"}, {"DSTRAIN_NEW", "a=b"}};
  const std::string text = printed_by(spec);
  CHECK_THAT(text,
             ContainsSubstring("DSTRAIN_T=new\n") && ContainsSubstring("DSTRAIN_TEST=other\n") &&
                 ContainsSubstring("DSTRAIN_NEW=a=b\n") && !ContainsSubstring("DSTRAIN_T=old"));
  ::unsetenv("DSTRAIN_T");
  ::unsetenv("DSTRAIN_TEST");
}

TEST_CASE("Process: a program begins with the signals it was given", "[launcher]") {
  struct sigaction before {};
  ::sigaction(SIGPIPE, nullptr, &before);
  ignore_broken_pipes();
  const std::array<int, 2> watched{SIGTERM, SIGUSR2};
  {
    const SignalSource signals(watched);
    ProcessSpec spec = spec_of({"cat", "/proc/self/status"});
    sigaddset(&spec.signal_mask, SIGUSR1);
    const std::string text = printed_by(spec);
    const auto mask_after = [&](const std::string& line) {
      return std::stoull(text.substr(text.find(line) + line.size()), nullptr, 16);
    };
    CHECK(mask_after("SigBlk:") == 1ULL << (SIGUSR1 - 1));
    CHECK((mask_after("SigIgn:") & (1ULL << (SIGPIPE - 1))) == 0);
  }
  ::sigaction(SIGPIPE, &before, nullptr);
}
