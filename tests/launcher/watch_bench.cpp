// What it costs that ranks are watched: a publication, on the rank, and a look at a rank, on its
// agent.
#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "launcher/agent/rank_view.h"
#include "tests/support/catch.h"

using namespace dstrain;

namespace {

/// Nanoseconds of one call: the median of so many samples.
double nanoseconds_of(int calls, const std::function<void()>& call) {
  constexpr std::size_t samples = 101;
  std::vector<double> times;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    times.push_back(spent.count() / calls);
  }
  std::sort(times.begin(), times.end());
  return times[samples / 2];
}

}  // namespace

TEST_CASE("Watch: what publications and looks cost", "[bench]") {
  const UniqueFd memory = ProgressPage::make_memory();
  auto page = ProgressPage::map(memory.get());
  REQUIRE(page.ok());
  ProgressPage& rank = page.value();
  int unit = 0;
  const double work = nanoseconds_of(10'000, [&] { rank.begin_work(Work::forward, ++unit); });
  const double collective = nanoseconds_of(10'000, [&] {
    rank.begin_operation({.name = "reduce_scatter", .numel = unit, .dtype = "f32"});
    rank.end_operation();
  });
  launcher::RankView view(0, memory.get());
  view.started(::getpid());
  int changed = 0;
  const double look = nanoseconds_of(100, [&] {
    rank.begin_work(Work::forward, ++unit);
    changed += view.look().has_value() ? 1 : 0;
  });
  CHECK(changed > 0);
  fmt::print("what a rank computes: {:.0f} ns; a collective: {:.0f} ns twice; a look: {:.1f} us\n",
             work, collective / 2, look / 1e3);
}
