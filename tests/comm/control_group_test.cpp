// Control groups of all kinds under one suite: values, and what is said when they cannot come.
#include "runtime/comm/control/control_group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <numeric>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/comm/control/hierarchical_control_group.h"
#include "runtime/comm/control/shared_control_group.h"
#include "runtime/comm/packed_texts.h"
#include "runtime/numeric/philox.h"
#include "tests/comm/conformance.h"
#include "tests/comm/memory_store.h"
#include "tests/comm/reference.h"
#include "tests/support/catch.h"
#include "tests/support/process_end.h"
#include "tests/support/ranks.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using comm::ControlGroup;

namespace {

/// The ranks of a group, each for a thread of its own.
struct Ranks {
  std::unique_ptr<test::MemoryStore> store = std::make_unique<test::MemoryStore>();
  std::vector<std::unique_ptr<ControlGroup>> members;
  [[nodiscard]] int size() const { return static_cast<int>(members.size()); }
  ControlGroup& operator[](int rank) { return *members[static_cast<std::size_t>(rank)]; }
};

struct Maker {
  std::string name;
  std::function<Ranks(int size, double timeout_seconds)> make;
};

comm::TreeControlGroup::Options tree_options(int rank, int size, double timeout_seconds) {
  return {.tcp = {.rank = rank, .size = size, .timeout_seconds = timeout_seconds}};
}

Ranks make_shared(int size, double timeout_seconds) {
  Ranks ranks;
  ranks.members = comm::make_thread_control_groups(size, timeout_seconds);
  return ranks;
}

Ranks make_tree(int size, double timeout_seconds) {
  Ranks ranks;
  ranks.members.resize(static_cast<std::size_t>(size));
  test::run_ranks(size, [&](int rank) {
    ranks.members[static_cast<std::size_t>(rank)] = std::make_unique<comm::TreeControlGroup>(
        *ranks.store, tree_options(rank, size, timeout_seconds));
  });
  return ranks;
}

/// Rank r is on node `node_of(r)`.
Ranks make_nodes(int size, double timeout_seconds, const std::function<int(int)>& node_of) {
  Ranks ranks;
  ranks.members.resize(static_cast<std::size_t>(size));
  comm::NodeMap map;
  for (int rank = 0; rank < size; ++rank) {
    const auto node = static_cast<std::size_t>(node_of(rank));
    if (map.nodes.size() <= node) map.nodes.resize(node + 1);
    map.nodes[node].push_back(rank);
  }
  std::vector<std::shared_ptr<const comm::Segment>> segments;
  for (const std::vector<int>& node : map.nodes) {
    segments.push_back(std::make_shared<const comm::Segment>(
        comm::Segment::create(static_cast<int>(node.size()), 0)));
  }
  test::run_ranks(size, [&](int rank) {
    ranks.members[static_cast<std::size_t>(rank)] =
        std::make_unique<comm::HierarchicalControlGroup>(
            *ranks.store, tree_options(rank, size, timeout_seconds).tcp, map,
            segments[static_cast<std::size_t>(map.node_of(rank))]);
  });
  return ranks;
}

std::vector<Maker> makers() {
  return {{"shared", make_shared},
          {"tree", make_tree},
          {"nodes of two",
           [](int size, double seconds) {
             return make_nodes(size, seconds, [](int rank) { return rank / 2; });
           }},
          {"scattered over two nodes", [](int size, double seconds) {
             return make_nodes(size, seconds, [](int rank) { return rank % 2; });
           }}};
}

/// Runs `body` on a thread per rank; returns what each threw.
std::vector<std::string> failures_of(Ranks& ranks, const std::function<void(ControlGroup&)>& body) {
  std::vector<std::string> failures(static_cast<std::size_t>(ranks.size()));
  test::run_ranks(ranks.size(), [&](int rank) {
    try {
      body(ranks[rank]);
    } catch (const Error& error) {
      failures[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  return failures;
}

/// A text of a rank in a round; some are longer than the slots of shared memory.
std::string text_of(int rank, std::uint64_t round) {
  const auto words =
      philox({.seed = 11, .stream = static_cast<std::uint32_t>(rank), .index = round});
  const std::size_t most = words[0] % 16 == 0 ? 200'000 : 300;
  return std::string(words[1] % most, static_cast<char>('a' + words[2] % 26));
}

void check_round(ControlGroup& control, std::uint64_t round) {
  const auto words = philox({.seed = 12, .index = round});
  const int root = static_cast<int>(words[1] % static_cast<std::uint32_t>(control.size()));
  switch (words[0] % 5) {
    case 0: {
      const auto values = control.gather(std::array{std::uint64_t(control.rank()), round});
      for (std::size_t r = 0; r < values.size(); ++r) {
        test::require(values[r] == std::array{std::uint64_t{r}, round}, "gather");
      }
      break;
    }
    case 1: {
      const auto texts = control.gather_texts(text_of(control.rank(), round));
      for (int r = 0; r < control.size(); ++r) {
        test::require(texts[static_cast<std::size_t>(r)] == text_of(r, round), "gather_texts");
      }
      break;
    }
    case 2:
      test::require(control.broadcast(text_of(control.rank(), round), root) == text_of(root, round),
                    "broadcast");
      break;
    case 3:
      test::require(control.any(control.rank() == root), "any");
      test::require(!control.any(false), "none");
      break;
    default:
      control.barrier();
  }
}

}  // namespace

TEST_CASE("ControlGroup: every rank gets the values of all", "[comm][control]") {
  for (const Maker& maker : makers()) {
    for (const int size : {1, 2, 3, 4, 7}) {
      CAPTURE(maker.name, size);
      Ranks ranks = maker.make(size, test::hang_seconds);
      REQUIRE_NOTHROW(test::run_ranks(
          size,
          [&](int rank) {
            for (std::uint64_t round = 0; round < 60; ++round) check_round(ranks[rank], round);
          },
          [&] { ranks[0].abort(); }));
    }
  }
}

TEST_CASE("ControlGroup: no rank passes a barrier before all have arrived", "[comm][control]") {
  for (const Maker& maker : makers()) {
    CAPTURE(maker.name);
    constexpr int size = 5;
    Ranks ranks = maker.make(size, test::hang_seconds);
    std::atomic<int> come = 0;
    REQUIRE_NOTHROW(test::run_ranks(size, [&](int rank) {
      for (int round = 1; round <= 50; ++round) {
        ++come;
        ranks[rank].barrier();
        test::require(come >= round * size, "barrier");
        ranks[rank].barrier();
      }
    }));
  }
}

TEST_CASE("ControlGroup: ranks that call different operations are named on all ranks",
          "[comm][control]") {
  for (const Maker& maker : makers()) {
    CAPTURE(maker.name);
    Ranks ranks = maker.make(4, test::hang_seconds);
    const auto failures = failures_of(ranks, [](ControlGroup& control) {
      control.rank() == 3 ? control.barrier() : static_cast<void>(control.gather(1));
    });
    for (const std::string& failure : failures) {
      CHECK_THAT(failure, ContainsSubstring("the ranks disagree") &&
                              ContainsSubstring("gather of 4 u8") &&
                              ContainsSubstring("rank 3 does barrier"));
    }
  }
}

TEST_CASE("ControlGroup: missing ranks are named", "[comm][control]") {
  for (const Maker& maker : makers()) {
    CAPTURE(maker.name);
    // Not 0: the first rank of a tree. 1 and 5 have others behind them.
    const std::vector<int> absent{1, 5};
    Ranks ranks = maker.make(8, 0.3);
    const auto failures = failures_of(ranks, [&](ControlGroup& control) {
      if (std::ranges::find(absent, control.rank()) == absent.end()) control.gather(1);
    });
    for (int rank = 0; rank < 8; ++rank) {
      if (rank == 1 || rank == 5) continue;
      CHECK_THAT(failures[static_cast<std::size_t>(rank)],
                 ContainsSubstring("timed out after 0.3 s"));
    }
    CHECK_THAT(failures[7], ContainsSubstring("waiting for ranks 1 5"));
    CHECK_THAT(failures[0], ContainsSubstring("waiting for ranks 1 5"));
  }
}

TEST_CASE("ControlGroup: an abort reaches every rank", "[comm][control]") {
  for (const Maker& maker : makers()) {
    const int culprit = GENERATE(0, 3, 5);
    CAPTURE(maker.name, culprit);
    Ranks ranks = maker.make(6, test::hang_seconds);
    const auto failures = failures_of(ranks, [&](ControlGroup& control) {
      control.rank() == culprit ? control.abort() : control.barrier();
    });
    for (int rank = 0; rank < 6; ++rank) {
      if (rank == culprit) continue;
      CHECK_THAT(failures[static_cast<std::size_t>(rank)],
                 ContainsSubstring("barrier") && ContainsSubstring("aborted by rank"));
    }
    CHECK_THROWS_WITH(ranks[culprit].barrier(), ContainsSubstring("aborted by rank"));
  }
}

TEST_CASE("ControlGroup: a failure reaches waiting ranks even past a busy one", "[comm][control]") {
  for (const Maker& maker : makers()) {
    CAPTURE(maker.name);
    Ranks ranks = maker.make(5, test::hang_seconds);
    std::atomic<int> heard = 0;
    const auto failures = failures_of(ranks, [&](ControlGroup& control) {
      control.barrier();
      if (control.rank() == 3) control.spread({ErrorCode::io, "the disk of rank 3 is full"});
      while (control.rank() != 4 && control.rank() != 2 && heard < 2) std::this_thread::yield();
      if (control.rank() == 4 || control.rank() == 2) {
        while (!control.failure()) std::this_thread::yield();
        ++heard;
        control.barrier();
      }
    });
    CHECK(failures[4] == "the disk of rank 3 is full");
    CHECK(failures[2] == "the disk of rank 3 is full");
  }
}

TEST_CASE("ControlGroup: a split gives an independent group", "[comm][control]") {
  for (const Maker& maker : makers()) {
    for (const int size : {2, 5, 6}) {
      CAPTURE(maker.name, size);
      Ranks ranks = maker.make(size, test::hang_seconds);
      REQUIRE_NOTHROW(test::run_ranks(
          size,
          [&](int rank) {
            // Odd and even ranks, each in reverse order.
            const auto half = ranks[rank].split({.color = rank % 2, .key = -rank});
            const std::vector<int> members = half->gather(rank);
            for (std::size_t i = 0; i < members.size(); ++i) {
              test::require(members[i] % 2 == rank % 2, "color");
              test::require(i == 0 || members[i] < members[i - 1], "order");
            }
            test::require(members[static_cast<std::size_t>(half->rank())] == rank, "rank");
            const auto alone = half->split({.color = half->rank()});
            test::require(alone->size() == 1 && alone->gather(7) == std::vector{7}, "alone");
            ranks[rank].barrier();
          },
          [&] { ranks[0].abort(); }));
    }
  }
}

TEST_CASE("ControlGroup: a rank that leaves is named", "[comm][control]") {
  for (const Maker& maker : makers()) {
    CAPTURE(maker.name);
    Ranks ranks = maker.make(4, test::hang_seconds);
    const auto failures = failures_of(ranks, [&](ControlGroup& control) {
      control.barrier();
      if (control.rank() == 3) return ranks.members[3].reset();
      control.barrier();
    });
    for (const std::size_t rank : {0U, 1U, 2U}) {
      CHECK_THAT(failures[rank], ContainsSubstring("rank 3 has left the group"));
    }
  }
}

TEST_CASE("TreeControlGroup: a failed rank is gone for all others", "[comm][control]") {
  const int culprit = GENERATE(0, 1, 6);
  CAPTURE(culprit);
  Ranks ranks = make_tree(7, test::hang_seconds);
  const auto failures = failures_of(ranks, [&](ControlGroup& control) {
    control.barrier();
    if (control.rank() != culprit) return control.barrier();
    const std::unique_ptr<ControlGroup> own =
        std::move(ranks.members[static_cast<std::size_t>(culprit)]);
    fail(ErrorCode::io, "the disk is full");
  });
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    CHECK_THAT(failures[rank], ContainsSubstring(rank == static_cast<std::size_t>(culprit)
                                                     ? std::string("the disk is full")
                                                     : fmt::format("rank {} is gone", culprit)));
  }
}

TEST_CASE("PackedTexts: malformed texts are refused", "[comm][control]") {
  std::string packed;
  comm::pack_text(packed, 1, "one");
  comm::pack_text(packed, 0, "zero");
  CHECK(comm::unpack_texts(packed, 2) == std::vector<std::string>{"zero", "one"});
  CHECK_THROWS_AS(comm::unpack_texts(packed, 1), Error);
  for (std::size_t cut = 1; cut < packed.size(); ++cut) {
    if (cut == 12 + 3) continue;  // the whole of the first text
    CHECK_THROWS_AS(comm::unpack_texts(std::string_view(packed).substr(0, cut), 2), Error);
  }
}
