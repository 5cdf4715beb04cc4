#include "runtime/os/process_identity.h"

#include <array>
#include <csignal>
#include <utility>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/unique_handle.h"
#include "tests/support/catch.h"

using namespace dstrain;

namespace {

/// A process that waits for its end.
class Child {
 public:
  Child() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    const UniqueFd from(ends[0]);
    const UniqueFd to(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      const ProcessIdentity own = this_process();
      if (::write(to.get(), &own, sizeof(own)) != sizeof(own)) ::_exit(1);
      while (true) ::pause();
    }
    REQUIRE(::read(from.get(), &identity_, sizeof(identity_)) == sizeof(identity_));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child(Child&&) = delete;
  Child& operator=(Child&&) = delete;
  ~Child() {
    kill();
    reap();
  }

  [[nodiscard]] const ProcessIdentity& identity() const { return identity_; }
  /// Returns when it is a zombie.
  void kill() const {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  void reap() {
    if (pid_ != 0) ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
  ProcessIdentity identity_;
};

/// Lets this process open no file while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  NoDescriptors(NoDescriptors&&) = delete;
  NoDescriptors& operator=(NoDescriptors&&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

bool has_ended_without_descriptors(const ProcessIdentity& process) {
  const NoDescriptors none;
  return has_ended(process);
}

}  // namespace

TEST_CASE("ProcessIdentity: the end of a process is noticed", "[base]") {
  Child child;
  const ProcessIdentity identity = child.identity();
  CHECK_FALSE(has_ended(identity));
  child.kill();
  CHECK(has_ended(identity));  // a zombie
  child.reap();
  CHECK(has_ended(identity));
  CHECK_FALSE(has_ended(this_process()));
}

TEST_CASE("ProcessIdentity: a pid used again is another process", "[base]") {
  const Child child;
  ProcessIdentity earlier = child.identity();
  --earlier.start_ticks;
  CHECK(has_ended(earlier));
  earlier.start_ticks = 0;
  CHECK_FALSE(has_ended(earlier));  // not known when it started
}

TEST_CASE("ProcessIdentity: a process that cannot be seen counts as alive", "[base]") {
  const Child child;
  CHECK_FALSE(has_ended_without_descriptors(child.identity()));
  ProcessIdentity foreign = child.identity();
  ++foreign.pid_namespace;
  foreign.pid = 0;  // no such process here
  CHECK_FALSE(has_ended(foreign));
}
