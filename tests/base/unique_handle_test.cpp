#include "runtime/base/unique_handle.h"

#include <utility>
#include <vector>

#include <fcntl.h>

#include "tests/support/catch.h"

namespace dstrain {
namespace {

/// A handle to a slot of a list that counts how often each was released.
struct Slot {
  std::vector<int>* releases = nullptr;
  std::size_t index = 0;
  friend bool operator==(const Slot&, const Slot&) = default;
};

struct SlotTraits {
  using Raw = Slot;
  static Slot null() noexcept { return {}; }
  static void release(Slot slot) noexcept { ++(*slot.releases)[slot.index]; }
};

using UniqueSlot = UniqueHandle<SlotTraits>;

}  // namespace

TEST_CASE("UniqueHandle: releases once at the end of its scope", "[base][unique_handle]") {
  std::vector<int> releases(1);
  {
    const UniqueSlot handle({&releases, 0});
    CHECK(handle);
    CHECK(releases[0] == 0);
  }
  CHECK(releases[0] == 1);
}

TEST_CASE("UniqueHandle: a move transfers the handle", "[base][unique_handle]") {
  std::vector<int> releases(2);
  UniqueSlot first({&releases, 0});
  {
    UniqueSlot second(std::move(first));
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move)
    UniqueSlot third({&releases, 1});
    third = std::move(second);
    CHECK(releases == std::vector<int>{0, 1});
    CHECK(third.get().index == 0);
    auto& same = third;
    third = std::move(same);
    CHECK(third);
    CHECK(releases == std::vector<int>{0, 1});
  }
  CHECK(releases == std::vector<int>{1, 1});
}

TEST_CASE("UniqueHandle: detach gives up without releasing", "[base][unique_handle]") {
  std::vector<int> releases(1);
  {
    UniqueSlot handle({&releases, 0});
    CHECK(handle.detach().releases == &releases);
    CHECK_FALSE(handle);
  }
  CHECK(releases[0] == 0);
}

TEST_CASE("UniqueHandle: reset is idempotent", "[base][unique_handle]") {
  std::vector<int> releases(1);
  UniqueSlot handle({&releases, 0});
  handle.reset();
  handle.reset();
  CHECK(releases[0] == 1);
}

TEST_CASE("UniqueFd: closes the descriptor and has its size", "[base][unique_handle]") {
  STATIC_REQUIRE(sizeof(UniqueFd) == sizeof(int));
  UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(fd);
  const int number = fd.get();
  CHECK(::fcntl(number, F_GETFD) != -1);
  fd.reset();
  CHECK(::fcntl(number, F_GETFD) == -1);
}

}  // namespace dstrain
