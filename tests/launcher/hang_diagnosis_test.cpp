#include "launcher/job/hang_diagnosis.h"

#include <fmt/format.h>

#include "tests/launcher/seen_ranks.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;
using Catch::Matchers::ContainsSubstring;
using test::SeenRank;

namespace {

WatchedRanks watched(const std::vector<SeenRank>& ranks) {
  WatchedRanks watched;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = static_cast<int>(i);
    watched[rank] = {ranks[i].look(rank), 31'000'000'000, 31};
  }
  return watched;
}

std::string text_of(const WatchedRanks& ranks) {
  std::string text;
  const auto place = [](int rank) {
    return fmt::format("host w{}, pid {}", rank, 100 + rank);
  };
  for (const std::string& line : describe(diagnose(ranks), ranks, place)) text += line + "\n";
  return text;
}

constexpr SeenRank waits{.sequence = 11, .inside = true};

constexpr SeenRank stopped_inside{.sequence = 11, .inside = true, .state = 'T'};

struct Case {
  const char* what;
  std::vector<SeenRank> ranks;
  HangKind kind;
  std::vector<int> suspects;
};

}  // namespace

TEST_CASE("Hang diagnosis: finds the rank that blocks the job", "[launcher]") {
  const auto row = GENERATE(values<Case>({
      {"a rank computes without end", {waits, waits, {.state = 'R'}}, HangKind::missing, {2}},
      {"a rank is stopped", {waits, {.state = 'T'}, waits}, HangKind::missing, {1}},
      {"a rank is stopped within the collective",
       {waits, waits, stopped_inside},
       HangKind::stopped,
       {2}},
      {"two ranks are", {stopped_inside, waits, stopped_inside}, HangKind::stopped, {0, 2}},
      {"a rank is stopped in a collective that the others have left",
       {stopped_inside, {.sequence = 12, .inside = true}, {.sequence = 12, .inside = true}},
       HangKind::stopped,
       {0}},
      {"two sleep on a disk", {waits, {.state = 'D'}, {.state = 'D'}}, HangKind::missing, {1, 2}},
      {"a rank does another operation",
       {waits, {.sequence = 11, .inside = true, .operation = "reduce_scatter"}, waits},
       HangKind::mismatch,
       {1}},
      {"a rank has another size",
       {waits, waits, {.sequence = 11, .inside = true, .numel = 99}},
       HangKind::mismatch,
       {2}},
      {"two ranks do different things",
       {waits, {.sequence = 11, .inside = true, .operation = "gather"}},
       HangKind::divided,
       {0, 1}},
      {"as many do one thing as another",
       {waits,
        {.sequence = 11, .inside = true, .numel = 99},
        waits,
        {.sequence = 11, .inside = true, .numel = 99}},
       HangKind::divided,
       {0, 1, 2, 3}},
      {"of two ranks the first left a collective out and waits in the next step",
       {{.step = 6, .sequence = 11, .inside = true, .operation = "barrier"}, waits},
       HangKind::skipped,
       {0}},
      {"of two ranks the second did",
       {waits, {.step = 6, .sequence = 11, .inside = true, .operation = "barrier"}},
       HangKind::skipped,
       {1}},
      {"a rank left a collective out and waits in the next step",
       {waits, waits, {.step = 6, .sequence = 11, .inside = true, .operation = "barrier"}},
       HangKind::skipped,
       {2}},
      {"a rank left out the last collective and computes in the next step",
       {waits, {.step = 6, .state = 'R'}, waits},
       HangKind::skipped,
       {1}},
      {"a rank has not got out of a collective",
       {{.sequence = 12, .inside = true}, waits, {.sequence = 12, .inside = true}},
       HangKind::left,
       {1}},
      {"all are in the same collective", {waits, waits, waits}, HangKind::together, {0, 1, 2}},
      {"a disk does not take a checkpoint",
       {{.phase = RunPhase::awaiting_save},
        {.phase = RunPhase::awaiting_save, .saves = true},
        {.phase = RunPhase::awaiting_save, .inside = true}},
       HangKind::saving,
       {1}},
      {"a rank does not come to the rendezvous",
       {{.phase = RunPhase::meeting, .sequence = 0},
        {.changes = 0, .phase = RunPhase::starting, .sequence = 0},
        {.phase = RunPhase::meeting, .sequence = 0}},
       HangKind::absent,
       {1}},
      {"all wait for ranks that nobody watches here",
       {{.phase = RunPhase::meeting, .sequence = 0}, {.phase = RunPhase::meeting, .sequence = 0}},
       HangKind::meeting,
       {}},
      {"one rank alone", {{.sequence = 0, .state = 'R'}}, HangKind::apart, {0}},
      {"one of those that do not wait is stopped", {{}, {.state = 'T'}}, HangKind::apart, {1}},
  }));
  CAPTURE(row.what);
  const Diagnosis diagnosis = diagnose(watched(row.ranks));
  CHECK(diagnosis.kind == row.kind);
  CHECK(diagnosis.suspects == row.suspects);
  CHECK(diagnosis.suspects.size() + diagnosis.waiting.size() == row.ranks.size());
  CHECK_FALSE(text_of(watched(row.ranks)).empty());
}

TEST_CASE("Hang diagnosis: the report names the rank and its host and the waiting ranks",
          "[launcher]") {
  const std::string text = text_of(watched({waits, waits, {.state = 'T'}, waits}));
  CHECK_THAT(text, ContainsSubstring("rank 2 is missing in collective 11, all_gather of 100 f32"));
  CHECK_THAT(
      text, ContainsSubstring("rank 2 (host w2, pid 102), stopped: step 5, training for 31 s; last "
                              "collective 10, all_gather of 100 f32, 31 s ago"));
  CHECK_THAT(text, ContainsSubstring("ranks 0 1 3, asleep: step 5"));
}

TEST_CASE("Hang diagnosis: a rank suspended in a collective is not missing from it", "[launcher]") {
  CHECK_THAT(text_of(watched({waits, stopped_inside})),
             ContainsSubstring("rank 1 is stopped in collective 11, all_gather of 100 f32\n"
                               "rank 1 (host w1, pid 101), stopped: ") &&
                 !ContainsSubstring("missing"));
  CHECK_THAT(text_of(watched({waits, {.sequence = 12, .inside = true}, stopped_inside})),
             ContainsSubstring("rank 2 is stopped in collective 11, all_gather of 100 f32"));
  CHECK_THAT(text_of(watched({stopped_inside, waits, stopped_inside})),
             ContainsSubstring("ranks 0 2 are stopped in collective 11"));
  const WatchedRanks ranks = watched({waits, stopped_inside, {.state = 'R'}});
  CHECK(diagnose(ranks).waiting == std::vector{0});
  CHECK_THAT(text_of(ranks),
             ContainsSubstring("rank 2 is missing in collective 11, all_gather of 100 f32; "
                               "rank 1 is stopped in it\n"
                               "rank 2 (host w2, pid 102), running: ") &&
                 ContainsSubstring("rank 1 (host w1, pid 101), stopped: "));
}

TEST_CASE("Hang diagnosis: ranks in the rendezvous are reported with those they wait for",
          "[launcher]") {
  constexpr SeenRank meets{.phase = RunPhase::meeting, .sequence = 0};
  const WatchedRanks ranks = watched({meets, meets});
  CHECK_THAT(text_of(ranks),
             ContainsSubstring("all ranks here wait in the rendezvous\nranks 0 1, "));
  Diagnosis diagnosis = diagnose(ranks);
  diagnosis.awaited = "ranks 2 3 (host w1)";
  const auto place = [](int) {
    return "";
  };
  CHECK(describe(diagnosis, ranks, place).front() ==
        "all ranks here wait in the rendezvous, for ranks 2 3 (host w1)");
}

TEST_CASE("Hang diagnosis: a mismatch is reported with what most ranks do", "[launcher]") {
  const std::string text =
      text_of(watched({{.sequence = 11, .inside = true, .numel = 99}, waits, waits}));
  CHECK_THAT(text, ContainsSubstring("rank 0 does something else than the others in collective 11, "
                                     "all_gather of 100 f32"));
}

TEST_CASE("Hang diagnosis: a report of many ranks stays short", "[launcher]") {
  std::vector<SeenRank> ranks(1000);
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].step = static_cast<std::int64_t>(i);
  const std::string text = text_of(watched(ranks));
  CHECK(text.size() < 8000);
  CHECK_THAT(text, ContainsSubstring("and 984 more ranks"));
}
