#include "launcher/hosts/task_starter.h"

#include "tests/support/catch.h"

using namespace dstrain;
using launcher::TaskStarter;

namespace {

/// What is shown of a starter that runs this script.
std::string printed_by(const std::string& script) {
  launcher::TaskCommand command;
  command.argv = {"/bin/sh", "-c", script};
  sigset_t none;
  sigemptyset(&none);
  TaskStarter starter(command, {}, none);
  while (!starter.ended()) {
    std::vector<pollfd> fds;
    starter.add_polls(fds);
    REQUIRE(::poll(fds.data(), fds.size(), -1) > 0);
    starter.advance(fds.data());
  }
  return starter.output();
}

}  // namespace

TEST_CASE("Task starter: the beginning and the end of its output are shown", "[launcher]") {
  CHECK(printed_by("exit 1").empty());
  CHECK(printed_by("echo one; echo -----; echo; echo two") == "one\n  two");
  CHECK(printed_by("seq 12") == "1\n  2\n  3\n  4\n  5\n  6\n  7\n  8\n  9\n  10\n  11\n  12");
  const std::string shortened =
      "1\n  2\n  3\n  4\n  5\n  6\n  ...\n  7\n  8\n  9\n  10\n  11\n  12";
  CHECK(printed_by("seq 6; echo left out; seq 7 12") == shortened);
  CHECK(printed_by("seq 6; yes left out | head -n 100000; seq 7 12") == shortened);
}
