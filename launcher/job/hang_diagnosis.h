#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launcher/job/watch.h"

namespace dstrain::launcher {

enum class HangKind {
  absent,    ///< others wait in the rendezvous, and the suspects have not reached it
  moving,    ///< no hang: the ranks have just made progress
  meeting,   ///< all wait in the rendezvous for ranks that another launcher watches
  missing,   ///< others wait in a collective that the suspects have not reached
  skipped,   ///< likewise, and the suspects are steps ahead: they skipped a collective
  stopped,   ///< a signal has stopped the suspects in a collective, and none is missing in it
  mismatch,  ///< in one collective the suspects do something else than the others
  divided,   ///< likewise, and no side has the most ranks: all are suspects
  left,      ///< the suspects are in a collective that the others have left
  together,  ///< all are in the same collective: none is missing
  saving,    ///< all wait for a checkpoint, which the suspects write
  apart,     ///< no rank is in a collective: all but those that have stopped compute
};

/// The ranks that hold a job up, and how.
struct Diagnosis {
  HangKind kind = HangKind::apart;
  std::vector<int> suspects{};   ///< all ranks if none stands out; none in the rendezvous
  std::vector<int> stopped{};    ///< besides: in the collective that the suspects have not reached
  std::vector<int> waiting{};    ///< the others
  CollectiveState collective{};  ///< that the others are in, or stopped suspects; sequence 0: none
  std::string awaited{};  ///< in the rendezvous: the ranks they say they wait for; empty: unknown
};

Diagnosis diagnose(const WatchedRanks& ranks);

/// "host w1, pid 123" of a rank.
using PlaceOfRank = std::function<std::string(int)>;

/// A headline and a line for each suspect, and for those that wait together.
std::vector<std::string> describe(const Diagnosis& diagnosis,
                                  const WatchedRanks& ranks,
                                  const PlaceOfRank& place);

/// "rank 3", "ranks 0 1 2"; of many, the first ones and how many more.
std::string list_ranks(const std::vector<int>& ranks);

}  // namespace dstrain::launcher
