#include "launcher/job/hang_diagnosis.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "launcher/process/proc_thread.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t listed_max = 16;
constexpr std::size_t lines_max = 16;  // of suspects

const RankProgress& progress_of(const WatchedRanks& ranks, int rank) {
  return ranks.at(rank).look.progress;
}

std::vector<int> ranks_that(const WatchedRanks& ranks, auto&& predicate) {
  std::vector<int> found;
  for (const auto& [number, rank] : ranks) {
    if (predicate(rank)) found.push_back(number);
  }
  return found;
}

bool is_inside(const WatchedRank& rank) {
  return rank.look.progress.collective.inside != 0;
}

std::uint64_t sequence_of(const WatchedRank& rank) {
  return rank.look.progress.collective.sequence;
}

/// The latest collective that a rank is in; sequence 0: no rank is in one.
CollectiveState awaited_collective(const WatchedRanks& ranks) {
  CollectiveState awaited;
  for (const auto& [number, rank] : ranks) {
    if (is_inside(rank) && sequence_of(rank) > awaited.sequence) {
      awaited = rank.look.progress.collective;
    }
  }
  return awaited;
}

auto signature_of(const CollectiveState& state) {
  return std::tuple(state.operation, state.dtype, state.numel);
}

/// Groups the ranks in the collective with this number by what they do there.
std::vector<std::vector<int>> group_alike(const WatchedRanks& ranks, std::uint64_t sequence) {
  std::map<decltype(signature_of({})), std::vector<int>> by_signature;
  for (const auto& [number, rank] : ranks) {
    if (!is_inside(rank) || sequence_of(rank) != sequence) continue;
    by_signature[signature_of(rank.look.progress.collective)].push_back(number);
  }
  std::vector<std::vector<int>> groups;
  groups.reserve(by_signature.size());
  for (auto& [signature, group] : by_signature) groups.push_back(std::move(group));
  return groups;
}

bool all_are_in(const WatchedRanks& ranks, RunPhase phase) {
  return std::ranges::all_of(ranks, [phase](const auto& entry) {
    return entry.second.look.progress.compute.phase == phase;
  });
}

bool is_stopped(const WatchedRank& rank) {
  return rank.look.state == 'T' || rank.look.state == 't';  // by a signal, or by a debugger
}

/// The earliest collective in which a signal has stopped a rank; sequence 0: there is none.
CollectiveState held_collective(const WatchedRanks& ranks) {
  CollectiveState held;
  for (const auto& [number, rank] : ranks) {
    if (!is_stopped(rank) || !is_inside(rank)) continue;
    if (held.sequence == 0 || sequence_of(rank) < held.sequence) {
      held = rank.look.progress.collective;
    }
  }
  return held;
}

std::vector<int> stopped_in(const WatchedRanks& ranks, std::uint64_t sequence) {
  return ranks_that(ranks, [sequence](const WatchedRank& rank) {
    return is_stopped(rank) && is_inside(rank) && sequence_of(rank) == sequence;
  });
}

/// Whether each of `suspects` has begun a later step than all others that are in the collective.
bool are_ahead(const WatchedRanks& ranks, const std::vector<int>& suspects) {
  std::int64_t others = 0;
  for (const auto& [number, rank] : ranks) {
    if (std::ranges::find(suspects, number) != suspects.end()) continue;
    others = std::max(others, rank.look.progress.compute.step);
  }
  return std::ranges::all_of(
      suspects, [&](int rank) { return progress_of(ranks, rank).compute.step > others; });
}

/// The ranks that do something else than most in the collective with this number. If no side has
/// the most ranks: the side that skipped something, else all of them. Empty: all do the same.
std::vector<int> find_mismatch(const WatchedRanks& ranks, std::uint64_t sequence) {
  std::vector<std::vector<int>> groups = group_alike(ranks, sequence);
  if (groups.size() < 2) return {};
  std::ranges::stable_sort(groups, std::greater(), &std::vector<int>::size);
  std::vector<int> suspects;
  if (groups[0].size() == groups[1].size()) {
    for (const std::vector<int>& group : groups) {
      if (are_ahead(ranks, group)) return group;
    }
    suspects = groups[0];
  }
  for (const std::vector<int>& group : std::span(groups).subspan(1)) {
    suspects.insert(suspects.end(), group.begin(), group.end());
  }
  std::ranges::sort(suspects);
  return suspects;
}

/// Sets the collective of the ranks that are not suspects, if any are left.
void tell_common_collective(const WatchedRanks& ranks, Diagnosis& diagnosis) {
  for (const auto& [number, rank] : ranks) {
    if (!is_inside(rank) || sequence_of(rank) != diagnosis.collective.sequence) continue;
    if (std::ranges::find(diagnosis.suspects, number) != diagnosis.suspects.end()) continue;
    diagnosis.collective = rank.look.progress.collective;
    return;
  }
  diagnosis.kind = HangKind::divided;
}

Diagnosis diagnose_collective(const WatchedRanks& ranks, const CollectiveState& awaited) {
  Diagnosis diagnosis{.kind = HangKind::missing, .collective = awaited};
  diagnosis.suspects = ranks_that(ranks, [&](const WatchedRank& rank) {
    return sequence_of(rank) < awaited.sequence && !is_inside(rank);
  });
  if (!diagnosis.suspects.empty()) {
    if (are_ahead(ranks, diagnosis.suspects)) diagnosis.kind = HangKind::skipped;
    diagnosis.stopped = stopped_in(ranks, awaited.sequence);
    return diagnosis;
  }
  const CollectiveState held = held_collective(ranks);
  if (held.sequence > 0) {
    return {.kind = HangKind::stopped,
            .suspects = stopped_in(ranks, held.sequence),
            .collective = held};
  }
  diagnosis.kind = HangKind::mismatch;
  diagnosis.suspects = find_mismatch(ranks, awaited.sequence);
  if (!diagnosis.suspects.empty()) {
    if (are_ahead(ranks, diagnosis.suspects)) diagnosis.kind = HangKind::skipped;
    tell_common_collective(ranks, diagnosis);
    return diagnosis;
  }
  diagnosis.kind = HangKind::left;
  diagnosis.suspects = ranks_that(ranks, [&](const WatchedRank& rank) {
    return is_inside(rank) && sequence_of(rank) < awaited.sequence;
  });
  if (diagnosis.suspects.empty()) diagnosis.kind = HangKind::together;
  return diagnosis;
}

double seconds_since(const WatchedRank& rank, std::int64_t since_ns) {
  return static_cast<double>(rank.now_ns - since_ns) / 1e9;
}

std::string suspect_line(const WatchedRank& rank) {
  const RankProgress& progress = rank.look.progress;
  const std::string_view state = thread_state_words(rank.look.state);
  if (!rank.publishes()) return fmt::format("{}, and has published nothing", state);
  std::string text = fmt::format("{}: {} for {:.0f} s", state, describe(progress.compute),
                                 seconds_since(rank, progress.compute.since_ns));
  if (progress.save.busy != 0) {
    text += fmt::format("; the thread that saves is {}, at the same piece for {:.0f} s",
                        thread_state_words(rank.look.save_state),
                        seconds_since(rank, progress.save.since_ns));
  }
  if (progress.collective.sequence == 0) return text;
  const bool inside = progress.collective.inside != 0;
  return text + fmt::format("; {} collective {}, {}, {}{:.0f} s{}", inside ? "in" : "last",
                            progress.collective.sequence, describe(progress.collective),
                            inside ? "for " : "", seconds_since(rank, progress.collective.since_ns),
                            inside ? "" : " ago");
}

/// The ranks that hold the job up.
std::vector<int> culprits_of(const Diagnosis& diagnosis) {
  std::vector<int> ranks = diagnosis.suspects;
  ranks.insert(ranks.end(), diagnosis.stopped.begin(), diagnosis.stopped.end());
  return ranks;
}

/// "; rank 1 is stopped in it": ends a headline that names the collective.
std::string also_stopped(const std::vector<int>& ranks) {
  if (ranks.empty()) return "";
  return fmt::format("; {} {} stopped in it", list_ranks(ranks), ranks.size() == 1 ? "is" : "are");
}

std::string headline(const Diagnosis& diagnosis) {
  const std::string suspects = list_ranks(diagnosis.suspects);
  const bool one = diagnosis.suspects.size() == 1;
  const std::string collective = fmt::format("collective {}, {}", diagnosis.collective.sequence,
                                             describe(diagnosis.collective));
  switch (diagnosis.kind) {
    case HangKind::moving:
      return "the ranks are making progress";
    case HangKind::absent:
      return fmt::format("{} {} not reached the rendezvous", suspects, one ? "has" : "have");
    case HangKind::meeting:
      return fmt::format("all ranks here wait in the rendezvous{}{}",
                         diagnosis.awaited.empty() ? "" : ", for ", diagnosis.awaited);
    case HangKind::missing:
      return fmt::format("{} {} missing in {}{}", suspects, one ? "is" : "are", collective,
                         also_stopped(diagnosis.stopped));
    case HangKind::skipped:
      return fmt::format(
          "{} {} skipped a collective: already in a later step, while others are in {}{}", suspects,
          one ? "has" : "have", collective, also_stopped(diagnosis.stopped));
    case HangKind::stopped:
      return fmt::format("{} {} stopped in {}", suspects, one ? "is" : "are", collective);
    case HangKind::mismatch:
      return fmt::format("the ranks disagree: {} {} something else than the others in {}", suspects,
                         one ? "does" : "do", collective);
    case HangKind::divided:
      return fmt::format("the ranks disagree in collective {}, and no side has the most ranks",
                         diagnosis.collective.sequence);
    case HangKind::left:
      return fmt::format("{} {} still in a collective that the others have left for {}", suspects,
                         one ? "is" : "are", collective);
    case HangKind::together:
      return fmt::format("no rank is missing in {}: check the network between them", collective);
    case HangKind::saving:
      return fmt::format("{} {} not make progress with a checkpoint", suspects,
                         one ? "does" : "do");
    case HangKind::apart:
      return diagnosis.waiting.empty() ? "no rank waits for another"
                                       : fmt::format("{} {} stopped", suspects, one ? "is" : "are");
  }
  return "";
}

}  // namespace

std::string list_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < std::min(ranks.size(), listed_max); ++i) {
    text += fmt::format(" {}", ranks[i]);
  }
  if (ranks.size() > listed_max) text += fmt::format(" and {} more", ranks.size() - listed_max);
  return text;
}

Diagnosis diagnose(const WatchedRanks& ranks) {
  const CollectiveState awaited = awaited_collective(ranks);
  const std::vector<int> savers =
      ranks_that(ranks, [](const WatchedRank& rank) { return rank.look.progress.save.busy != 0; });
  const std::vector<int> stopped = ranks_that(ranks, is_stopped);
  const auto meets = [](const WatchedRank& rank) {
    return rank.look.progress.compute.phase == RunPhase::meeting;
  };
  const std::vector<int> absent = ranks_that(ranks, [](const WatchedRank& rank) {
    return rank.look.progress.compute.phase == RunPhase::starting;
  });
  Diagnosis diagnosis;
  if (!absent.empty() && !ranks_that(ranks, meets).empty()) {
    diagnosis = {.kind = HangKind::absent, .suspects = absent};
  } else if (all_are_in(ranks, RunPhase::meeting) && stopped.empty()) {
    diagnosis.kind = HangKind::meeting;
  } else if (all_are_in(ranks, RunPhase::awaiting_save) && !savers.empty() && stopped.empty()) {
    diagnosis = {.kind = HangKind::saving, .suspects = savers};
  } else if (awaited.sequence > 0) {
    diagnosis = diagnose_collective(ranks, awaited);
  } else {
    diagnosis.suspects = stopped;
  }
  if (diagnosis.suspects.empty() && diagnosis.kind != HangKind::meeting) {
    diagnosis.suspects = ranks_that(ranks, [](const WatchedRank&) { return true; });
  }
  const std::vector<int> culprits = culprits_of(diagnosis);
  diagnosis.waiting = ranks_that(ranks, [](const WatchedRank&) { return true; });
  std::erase_if(diagnosis.waiting,
                [&](int rank) { return std::ranges::find(culprits, rank) != culprits.end(); });
  return diagnosis;
}

std::vector<std::string> describe(const Diagnosis& diagnosis,
                                  const WatchedRanks& ranks,
                                  const PlaceOfRank& place) {
  std::vector<std::string> lines{headline(diagnosis)};
  const std::vector<int> culprits = culprits_of(diagnosis);
  for (std::size_t i = 0; i < std::min(culprits.size(), lines_max); ++i) {
    const int rank = culprits[i];
    lines.push_back(
        fmt::format("rank {} ({}), {}", rank, place(rank), suspect_line(ranks.at(rank))));
  }
  if (culprits.size() > lines_max) {
    lines.push_back(fmt::format("and {} more ranks", culprits.size() - lines_max));
  }
  std::map<std::string, std::vector<int>> alike;
  for (const int rank : diagnosis.waiting) {
    alike[suspect_line(ranks.at(rank))].push_back(rank);
  }
  for (const auto& [line, group] : alike) {
    if (lines.size() >= 2 * lines_max) break;
    lines.push_back(fmt::format("{}, {}", list_ranks(group), line));
  }
  return lines;
}

}  // namespace dstrain::launcher
