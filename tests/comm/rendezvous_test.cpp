#include "runtime/comm/rendezvous.h"

#include <array>
#include <future>

#include "runtime/base/error.h"
#include "runtime/comm/store/tcp_store.h"
#include "tests/comm/memory_store.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks.h"

using namespace dstrain;
using comm::TcpStore;

namespace {

TcpStore::Options tcp_options(Endpoint endpoint) {
  return {.endpoint = std::move(endpoint), .token = "key", .timeout_seconds = 600};
}

}  // namespace

TEST_CASE("Rendezvous: succeeds if all ranks arrive", "[comm]") {
  const auto server = TcpStore::serve(tcp_options({"127.0.0.1", 0}));
  REQUIRE_NOTHROW(test::run_ranks(4, [&](int rank) {
    if (rank == 0) return comm::wait_for_all(*server, {.rank = 0, .world_size = 4});
    const auto client = TcpStore::connect(tcp_options(server->endpoint()));
    comm::wait_for_all(*client, {.rank = rank, .world_size = 4});
  }));
}

TEST_CASE("Rendezvous: an unreachable address is reported at once", "[comm]") {
  const Endpoint nowhere{"fe80::1", 29500};  // of a link, and it does not say which
  try {
    comm::wait_for_route(nowhere, "MASTER_ADDR", 1e6);
    FAIL("there is no route");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::remote);
    CHECK_THAT(error.what(), Catch::Matchers::StartsWith("MASTER_ADDR: no route to fe80::1: "));
  }
}

TEST_CASE("Rendezvous: the missing ranks are named", "[comm]") {
  test::MemoryStore store;
  store.set("arrived/1", "1");
  const comm::Rendezvous rendezvous{
      .rank = 0, .world_size = 4, .timeout_seconds = 0.1, .place = "127.0.0.1:29500"};
  CHECK_THROWS_WITH(comm::wait_for_all(store, rendezvous),
                    "rendezvous timed out after 0.1 s at 127.0.0.1:29500: waiting for ranks 2 3; "
                    "see that all are started and reach this address and port, or raise --timeout");
}

TEST_CASE("Rendezvous: missing ranks are named with their hosts on every rank", "[comm]") {
  test::MemoryStore store;
  store.set("arrived/1", "1");
  std::string told;
  const comm::Rendezvous rendezvous{.rank = 0,
                                    .world_size = 4,
                                    .timeout_seconds = 0.1,
                                    .nodes = {{"w0", 2}, {"w1", 2}},
                                    .tell = [&](const std::string& ranks) {
                                      told = ranks;
                                    }};
  CHECK_THROWS_WITH(comm::wait_for_all(store, rendezvous),
                    Catch::Matchers::ContainsSubstring(": waiting for ranks 2 3 (host w1)"));
  CHECK(told == "ranks 2 3 (host w1)");
}

TEST_CASE("Rendezvous: two processes with the same rank are refused", "[comm]") {
  test::MemoryStore store;
  store.add("arrived/1", 1, 60);
  const comm::Rendezvous rendezvous{.rank = 1, .world_size = 2};
  CHECK_THROWS_WITH(comm::wait_for_all(store, rendezvous),
                    "two processes say that they are rank 1 at the store: give each its own RANK");
}

TEST_CASE("Rendezvous: ranks with different world sizes are reported", "[comm]") {
  test::MemoryStore store;
  std::array<std::string, 2> errors;
  test::run_ranks(2, [&](int rank) {
    errors[static_cast<std::size_t>(rank)] =
        test::error_of([&] { comm::wait_for_all(store, {.rank = rank, .world_size = 2 + rank}); });
  });
  for (const std::string& error : errors) {
    CHECK(error ==
          "WORLD_SIZE of rank 1 says 3 ranks, and WORLD_SIZE of rank 0 says 2 ranks: give "
          "all the same");
  }
}

TEST_CASE("Rendezvous: different world sizes are reported before duplicate ranks", "[comm]") {
  test::MemoryStore store;
  store.add("arrived/1", 1, 60);  // rank 1 of the four that rank 0 says there are
  store.set("world claim", "node 0's launcher says 4 ranks");
  store.set("world size", "4");
  const comm::Rendezvous rendezvous{
      .rank = 1, .world_size = 2, .world_claim = "node 1's launcher says 2 ranks"};
  const std::string told =
      "node 1's launcher says 2 ranks, and node 0's launcher says 4 ranks: give all the same";
  CHECK(test::error_of([&] { comm::wait_for_all(store, rendezvous); }) == told);
  CHECK(store.get("arrived", 0) == told);  // which ends the others
}

TEST_CASE("Rendezvous: different world sizes are reported on every rank before the store closes",
          "[comm]") {
  auto server = TcpStore::serve(tcp_options({"127.0.0.1", 0}));
  const Endpoint endpoint = server->endpoint();
  std::promise<void> first_has_failed;
  std::array<std::string, 3> errors;
  test::run_ranks(3, [&](int rank) {
    if (rank == 2) first_has_failed.get_future().wait();
    const auto store = rank == 0 ? std::move(server) : TcpStore::connect(tcp_options(endpoint));
    errors.at(static_cast<std::size_t>(rank)) = test::error_of(
        [&] { comm::wait_for_all(*store, {.rank = rank, .world_size = rank == 0 ? 2 : 3}); });
    if (rank == 1) first_has_failed.set_value();
  });
  for (const std::string& error : errors) {
    CHECK_THAT(error, Catch::Matchers::EndsWith(
                          "says 3 ranks, and WORLD_SIZE of rank 0 says 2 ranks: give "
                          "all the same"));
  }
}

TEST_CASE("Rendezvous: every rank names the missing ranks though the store ends with rank 0",
          "[comm]") {
  auto server = TcpStore::serve(tcp_options({"127.0.0.1", 0}));
  const Endpoint endpoint = server->endpoint();
  std::array<std::string, 2> messages;
  test::run_ranks(2, [&](int rank) {
    const auto store = rank == 0 ? std::move(server) : TcpStore::connect(tcp_options(endpoint));
    try {
      comm::wait_for_all(*store, {.rank = rank, .world_size = 4, .timeout_seconds = 0.5});
    } catch (const Error& error) {
      messages[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  for (const std::string& message : messages) {
    CHECK_THAT(message,
               Catch::Matchers::StartsWith("rendezvous timed out after 0.5 s at the store: waiting "
                                           "for ranks 2 3; see that all are started"));
  }
}
