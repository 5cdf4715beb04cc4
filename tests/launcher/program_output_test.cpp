#include "launcher/process/program_output.h"

#include "launcher/process/process.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr double long_seconds = 240;

/// Of a shell's script.
ProgramOutput output_of(const std::string& script, double seconds_max = long_seconds) {
  const Result<ProgramOutput> output = run_program({"/bin/sh", "-c", script}, seconds_max);
  REQUIRE(output.ok());
  return output.value();
}

}  // namespace

TEST_CASE("Program output: both streams and the status", "[launcher]") {
  const ProgramOutput output = output_of("echo one; echo two >&2; cat; exit 7");
  CHECK(output.text == "one\ntwo\n");
  REQUIRE(output.wait_status);
  CHECK(shell_status(*output.wait_status) == 7);
}

TEST_CASE("Program output: a program that does not end is killed whether it prints or not",
          "[launcher]") {
  const std::string closing = GENERATE("", "exec >&- 2>&-; ");
  CAPTURE(closing);
  const ProgramOutput output = output_of("echo begun; " + closing + "while :; do sleep 1; done", 1);
  CHECK(output.text == "begun\n");
  CHECK_FALSE(output.wait_status);
}

TEST_CASE("Program output: endless output is cut off", "[launcher]") {
  const ProgramOutput output = output_of("exec yes");
  CHECK(output.text.starts_with("y\ny\n"));
  CHECK(output.text.size() < 1U << 20);
  REQUIRE(output.wait_status);
  CHECK_THAT(describe_end(*output.wait_status), ContainsSubstring("SIGPIPE"));
}

TEST_CASE("Program output: what cannot be started is named", "[launcher]") {
  const auto output = run_program({"/nonexistent/program"}, long_seconds);
  REQUIRE_FALSE(output.ok());
  CHECK_THAT(output.error(), ContainsSubstring("/nonexistent/program: No such file"));
}
