#pragma once
#include <random>
#include <string>

namespace dstrain::test {

enum class HangFault {
  stop,      ///< SIGSTOP
  spin,      ///< a rank computes without end
  disk,      ///< a read of swapped states, or an fsync of a checkpoint, never returns
  mismatch,  ///< one rank does another collective than the others
  skip,      ///< one rank leaves a collective out
  cut,       ///< the link between two hosts is down
  deaf,      ///< what is sent to one of two hosts is lost, and what it sends arrives
};
const char* name_of(HangFault fault);

/// One launch in which a rank, or the network, fails so that nothing ends by itself.
struct HangRound {
  HangFault fault = HangFault::stop;
  int variant = 0;         ///< of the fault, from 0
  int ranks = 2;           ///< 2 to 4
  int rank = 0;            ///< the one that fails; of a network: the first on the host that suffers
  int step = 1;            ///< about when
  int stage = 0;           ///< of ZeRO
  bool two_hosts = false;  ///< "w0" and "w1", which has the smaller half of the ranks
};
/// All but the fault and its variant are random. `variant` counts on from the last one: it may be
/// any number.
HangRound random_round(HangFault fault, int variant, std::mt19937& random);
std::string to_string(const HangRound& round);

/// What became of a round.
struct HangReport {
  std::string problem;   ///< with what should have been said; empty: the right rank was named
  std::string headline;  ///< of the alarm, or the error that ended the job
  std::string said;      ///< all of stderr
  int early_alarms = 0;  ///< before the fault: the machine was busy, as the least time is short
};

/// Launches, fails, and waits for what is said. No assertions: any thread may play.
HangReport play(const HangRound& round);

}  // namespace dstrain::test
