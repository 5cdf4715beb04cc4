#include "runtime/os/machine_identity.h"

#include <array>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/unique_handle.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace dstrain;

namespace {

/// As a child sees it, after `unshare(namespaces)`; zeros where that is refused.
Digest identity_in(int namespaces) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const UniqueFd from(ends[0]);
  const UniqueFd to(ends[1]);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  Digest identity{};
  if (child == 0) {
    if (::unshare(namespaces) == 0) identity = machine_identity();
    ::_exit(::write(to.get(), identity.data(), identity.size()) > 0 ? 0 : 1);
  }
  CHECK(::read(from.get(), identity.data(), identity.size()) == sizeof(Digest));
  ::waitpid(child, nullptr, 0);
  return identity;
}

}  // namespace

TEST_CASE("MachineIdentity: processes of one network have the same", "[base]") {
  CHECK_FALSE(boot_id().empty());
  CHECK(machine_identity() != Digest{});
  CHECK(identity_in(0) == machine_identity());
}

TEST_CASE("MachineIdentity: a network namespace counts as another machine", "[base]") {
  const int namespaces = ::geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWNET | CLONE_NEWUSER;
  const Digest apart = identity_in(namespaces);
  if (apart == Digest{}) test::skip("needs a network namespace");
  CHECK(apart != machine_identity());
}
