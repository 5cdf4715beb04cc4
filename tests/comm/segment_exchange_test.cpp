#include "runtime/comm/shm/segment_exchange.h"

#include <array>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>

#include <sys/mman.h>
#include <sys/stat.h>

#include "runtime/base/error.h"
#include "tests/comm/descriptor_limit.h"
#include "tests/support/catch.h"
#include "tests/support/ranks.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;

namespace {

UniqueFd memory_file() {
  return UniqueFd(::memfd_create("segment_exchange_test", MFD_CLOEXEC));
}

ino_t inode(int file) {
  struct stat info {};
  REQUIRE(::fstat(file, &info) == 0);
  return info.st_ino;
}

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string fetch_message(const comm::SegmentTicket& ticket, double seconds) {
  return message_of([&] { comm::fetch_segment(ticket, 1, Deadline::after(seconds)); });
}

}  // namespace

TEST_CASE("SegmentExchange: every rank gets the file", "[comm]") {
  const UniqueFd file = memory_file();
  comm::SegmentOffer offer;
  std::array<UniqueFd, 3> files;
  test::run_ranks(3, [&](int rank) {
    const Deadline deadline = Deadline::after(30);
    if (rank == 0) return offer.serve(file.get(), 3, deadline);
    files[static_cast<std::size_t>(rank)] = comm::fetch_segment(offer.ticket(), rank, deadline);
  });
  CHECK(inode(files[1].get()) == inode(file.get()));
  CHECK(inode(files[2].get()) == inode(file.get()));
}

TEST_CASE("SegmentExchange: repeated strangers do not delay the timeout", "[comm]") {
  comm::SegmentOffer offer;
  comm::SegmentTicket forged = offer.ticket();
  ++forged.secret[0];
  std::atomic<bool> ended{false};
  std::jthread stranger([&] {
    while (!ended) fetch_message(forged, 30);
  });
  const UniqueFd file = memory_file();
  CHECK(message_of([&] { offer.serve(file.get(), 3, Deadline::after(0.1)); }) ==
        "handing out shared memory timed out: waiting for ranks 1 2");
  ended = true;
  offer = comm::SegmentOffer();  // closes the queue, in which the stranger may wait
}

TEST_CASE("SegmentExchange: without a free descriptor rank 0 fails at once", "[comm]") {
  const UniqueFd file = memory_file();
  auto offer = std::make_unique<comm::SegmentOffer>();
  const comm::SegmentTicket ticket = offer->ticket();
  std::string fetched;
  std::latch limited(1);
  std::jthread rank_1([&] {
    limited.wait();
    fetched = fetch_message(ticket, 30);  // takes the last descriptor
  });
  const test::DescriptorLimit limit(1);  // after the thread: the sanitizers need one to check it
  limited.count_down();
  CHECK_THAT(message_of([&] { offer->serve(file.get(), 2, Deadline::after(30)); }),
             ContainsSubstring("handing out shared memory: accepting a rank: Too many open files"));
  offer.reset();
  rank_1.join();
  CHECK(fetched == "rank 0 refused its shared memory to rank 1");
}

TEST_CASE("SegmentExchange: a fetch without a server times out", "[comm]") {
  const comm::SegmentOffer offer;
  CHECK(fetch_message(offer.ticket(), 0.05) ==
        "rank 1 timed out waiting for rank 0's shared memory");
}

TEST_CASE("SegmentExchange: the reason that rank 0 is unreachable is reported", "[comm]") {
  const comm::SegmentTicket ticket = comm::SegmentOffer().ticket();
  CHECK_THAT(fetch_message(ticket, 30),
             ContainsSubstring(
                 "cannot reach rank 0's shared memory: Connection refused: rank 0 has ended"));
}
