#include "runtime/rank/progress_page.h"

#include <atomic>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>

#include "runtime/base/error.h"
#include "tests/support/catch.h"

using namespace dstrain;

namespace {

/// All words are equal in every value that is written.
struct Equal {
  std::array<std::uint64_t, 8> words{};
};

}  // namespace

TEST_CASE("PublishedRecord: a reader sees whole values in their order", "[base]") {
  PublishedRecord<Equal> record;
  std::atomic<bool> done{false};
  constexpr std::uint64_t values = 200'000;
  std::thread writer([&] {
    for (std::uint64_t value = 1; value <= values; ++value) {
      Equal equal;
      equal.words.fill(value);
      record.write(equal);
    }
    done = true;
  });
  std::uint64_t last = 0;
  bool whole = true;
  bool ordered = true;
  while (!done) {
    const auto seen = record.read();
    if (!seen) continue;
    for (const std::uint64_t word : seen->words) whole &= word == seen->words[0];
    ordered &= seen->words[0] >= last;
    last = seen->words[0];
  }
  writer.join();
  CHECK(whole);
  CHECK(ordered);
  CHECK(record.read()->words[7] == values);
}

TEST_CASE("ProgressPage: the agent reads what the rank publishes", "[base]") {
  UniqueFd memory = ProgressPage::make_memory();
  const auto agent = ProgressPage::map(memory.get());
  REQUIRE(agent.ok());
  CHECK(agent.value().read()->compute.changes == 0);

  const int fd = memory.detach();
  ::setenv(env::progress_fd, std::to_string(fd).c_str(), 1);
  ProgressPage rank = ProgressPage::from_environment();
  ::unsetenv(env::progress_fd);
  CHECK(::fcntl(fd, F_GETFD) == -1);  // the rank's children do not inherit it

  {
    const InPhase training(&rank, RunPhase::training);
    rank.begin_step(12);
    rank.begin_work(Work::backward, 4);
    rank.begin_operation({.name = "reduce_scatter_that_is_longer", .numel = 7, .dtype = "bf16"});
    const auto seen = agent.value().read();
    CHECK(describe(seen->compute) == "step 12, backward of unit 4");
    CHECK(describe(seen->collective) == "reduce_scatter_t of 7 bf16");
    CHECK(seen->collective.sequence == 1);
    CHECK(seen->collective.inside == 1);
    CHECK(seen->compute.thread == ::gettid());
    CHECK(seen->compute.since_ns > 0);
  }
  rank.end_operation();
  const SavePublished saving(rank);
  const auto seen = agent.value().read();
  CHECK(describe(seen->compute) == "step 12, starting");
  CHECK(seen->collective.inside == 0);
  CHECK(seen->save.busy == 1);
}

TEST_CASE("ProgressPage: a failed rank keeps the phase in which it failed", "[base]") {
  ProgressPage page;
  page.enter(RunPhase::starting);
  { const InPhase loading(&page, RunPhase::loading); }
  CHECK(describe(page.read()->compute) == "starting");
  try {
    const InPhase meeting(&page, RunPhase::meeting);
    fail(ErrorCode::timeout, "nobody comes");
  } catch (const Error&) {
    CHECK(describe(page.read()->compute) == "waiting for the other ranks to start");
  }
}

TEST_CASE("ProgressPage: other descriptors are left alone", "[base]") {
  const UniqueFd other(::memfd_create("other", MFD_CLOEXEC));
  CHECK_FALSE(ProgressPage::map(other.get()).ok());
  for (const std::string& text : {std::to_string(other.get()), std::string("no"), std::string()}) {
    CAPTURE(text);
    ::setenv(env::progress_fd, text.c_str(), 1);
    ProgressPage page = ProgressPage::from_environment();
    ::unsetenv(env::progress_fd);
    page.enter(RunPhase::loading);
    CHECK(describe(page.read()->compute) == "loading");
    CHECK(::fcntl(other.get(), F_GETFD) != -1);
  }
}
