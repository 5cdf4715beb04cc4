#include "launcher/job/job_directory.h"

#include <atomic>
#include <cstdlib>
#include <thread>

#include <sys/socket.h>
#include <sys/stat.h>

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
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  test::TempDir folder_;
};

}  // namespace

TEST_CASE("Job directory: a connection waits for a free slot and times out", "[launcher][job]") {
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

TEST_CASE("Job directory: files of a dead launcher are removed", "[launcher][job]") {
  const OwnDirectory own;
  const JobDirectory directory = JobDirectory::make();
  { const UniqueFd listener = directory.listen("job"); }
  CHECK(directory.jobs() == std::vector<std::string>{"job"});
  CHECK_FALSE(directory.connect("job", Deadline::after(60)));
  CHECK(directory.jobs().empty());
}

TEST_CASE("Job directory: if another user owns it another one is used and found",
          "[launcher][job]") {
  const OwnDirectory own;
  const std::filesystem::path taken = own.path() / "dstrain";
  REQUIRE(::mkdir(taken.c_str(), 0777) == 0);
  REQUIRE(::chmod(taken.c_str(), 0777) == 0);
  const JobDirectory directory = JobDirectory::make();
  const UniqueFd listener = directory.listen("job");
  CHECK(std::filesystem::is_empty(taken));
  const JobDirectory again = JobDirectory::make();
  CHECK(again.jobs() == std::vector<std::string>{"job"});
  std::size_t with_job = 0;
  for (const JobDirectory& found : JobDirectory::find_all()) {
    if (found.jobs() == std::vector<std::string>{"job"}) ++with_job;
  }
  CHECK(with_job == 1);
  CHECK(std::distance(std::filesystem::directory_iterator(own.path()), {}) == 2);
}
