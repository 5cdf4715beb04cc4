// Ranks and networks that fail without the end of anything, at random steps of random ranks, one
// launch each, over and over: the launcher names the right rank and what it was in.
// DSTRAIN_HANG_STORM sets how often each fault comes.
#include <array>
#include <atomic>
#include <thread>

#include <fmt/format.h>

#include "tests/fault/hang_round.h"
#include "tests/net/two_nodes.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/skip.h"

using namespace dstrain;
using test::HangFault;
using test::HangReport;
using test::HangRound;

namespace {

constexpr std::size_t launches_at_once = 8;  // which wait for most of their time

std::vector<HangReport> play_all(const std::vector<HangRound>& rounds) {
  std::vector<HangReport> reports(rounds.size());
  std::atomic<std::size_t> next{0};
  const auto play_some = [&] {
    for (std::size_t i = next++; i < rounds.size(); i = next++) {
      try {
        reports[i] = test::play(rounds[i]);
      } catch (const std::exception& error) {
        reports[i].problem = error.what();
      }
    }
  };
  std::vector<std::jthread> players;
  for (std::size_t i = 0; i < std::min(launches_at_once, rounds.size()); ++i) {
    players.emplace_back(play_some);
  }
  players.clear();
  return reports;
}

void storm(std::span<const HangFault> faults) {
  const unsigned seed = 20'261'124;
  std::mt19937 random(seed);
  const int times = test::count_from("DSTRAIN_HANG_STORM", 1);
  std::vector<HangRound> rounds;
  for (int i = 0; i < times; ++i) {
    for (const HangFault fault : faults) rounds.push_back(test::random_round(fault, i, random));
  }
  const std::vector<HangReport> reports = play_all(rounds);
  for (const HangFault fault : faults) {
    int named = 0;
    int early_alarms = 0;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      if (rounds[i].fault != fault) continue;
      named += reports[i].problem.empty() ? 1 : 0;
      early_alarms += reports[i].early_alarms;
      INFO(to_string(rounds[i]) << "\n" << reports[i].headline << "\n" << reports[i].said);
      CHECK(reports[i].problem.empty());
    }
    fmt::print("{}: {} of {} named; {} alarms before the fault\n", name_of(fault), named, times,
               early_alarms);
  }
}

}  // namespace

TEST_CASE("Hang storm: a rank that is suspended or spins or sleeps or diverges is named",
          "[fault][storm]") {
  storm(std::array{HangFault::stop, HangFault::spin, HangFault::disk, HangFault::mismatch,
                   HangFault::skip});
}

TEST_CASE("Hang storm: a dead network is distinguished from a hung rank", "[fault][storm]") {
  if (const auto reason = test::TwoNodes::refusal()) test::skip(*reason);
  storm(std::array{HangFault::cut, HangFault::deaf});
}
