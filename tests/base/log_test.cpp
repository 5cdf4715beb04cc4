#include "runtime/base/log.h"

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "runtime/rank/worker_env.h"
#include "tests/support/catch.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;

namespace {

/// What a process says on stderr that ends by an exception on a thread of its own.
[[noreturn]] void end_by_exception(int output) {
  ::dup2(output, STDERR_FILENO);
  ::setenv(env::rank, "7", 1);
  start_log("info");
  log_uncaught_exceptions();
  std::thread([] { throw std::runtime_error("out of luck"); }).join();
  ::_exit(status::done);
}

}  // namespace

TEST_CASE("Log: an uncaught exception is reported with its rank", "[base]") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) end_by_exception(ends[1]);
  ::close(ends[1]);
  std::string said;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    said.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int ended = 0;
  REQUIRE(::waitpid(pid, &ended, 0) == pid);
  CHECK(WEXITSTATUS(ended) == status::failed);
  CHECK_THAT(said, ContainsSubstring("rank 7 ends with an uncaught exception: "
                                     "std::runtime_error: out of luck"));
}
