#include "launcher/job/job_directory.h"

#include <atomic>
#include <cstdlib>
#include <thread>

#include <sys/socket.h>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using launcher::JobDirectory;

namespace {

/// A user's directory of its own while it lives.
class OwnDirectory {
 public:
  OwnDirectory() { ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1); }
  OwnDirectory(const OwnDirectory&) = delete;
  OwnDirectory& operator=(const OwnDirectory&) = delete;
  ~OwnDirectory() { ::unsetenv("XDG_RUNTIME_DIR"); }

 private:
  test::TempDir folder_;
};

}  // namespace

TEST_CASE("Job directory: a connection waits for room and not without end", "[launcher][job]") {
  const OwnDirectory own;
  const JobDirectory directory = JobDirectory::make();
  const UniqueFd listener = directory.listen("job");
  std::vector<UniqueFd> waiting;
  while (UniqueFd fd = directory.connect("job", Deadline::after(0.01))) {
    waiting.push_back(std::move(fd));
    REQUIRE(waiting.size() < 1000);
  }
  CHECK(waiting.size() >= 32);
  CHECK(directory.jobs() == std::vector<std::string>{"job"});  // busy, not gone
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> connecting = false;
    std::thread server([&] {
      connecting.wait(false);
      const UniqueFd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    });
    connecting = true;
    connecting.notify_one();
    UniqueFd late = directory.connect("job", Deadline::after(60));
    server.join();
    REQUIRE(late);
    waiting.push_back(std::move(late));
  }
}

TEST_CASE("Job directory: what a dead launcher has left goes", "[launcher][job]") {
  const OwnDirectory own;
  const JobDirectory directory = JobDirectory::make();
  { const UniqueFd listener = directory.listen("job"); }
  CHECK(directory.jobs() == std::vector<std::string>{"job"});
  CHECK_FALSE(directory.connect("job", Deadline::after(60)));
  CHECK(directory.jobs().empty());
}
