#pragma once
#include <stdexcept>

#include "tests/comm/groups.h"

namespace dstrain::test {

/// A check within a rank, where assertions of Catch2 are not safe.
inline void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

/// What every Communicator keeps to; called in a test case per implementation. `sizes` are the
/// sizes of world that it can have.
void check_results(const GroupMaker& groups, const std::vector<int>& worlds);
/// Sums so long that a communicator stages them in several rounds.
void check_long_sums(const GroupMaker& groups, const std::vector<int>& worlds);
void check_sequences(const GroupMaker& groups, const std::vector<int>& worlds);
void check_split(const GroupMaker& groups, const std::vector<int>& worlds);
void check_messages(const GroupMaker& groups);  ///< send and receive
void check_failures(const GroupMaker& groups);  ///< of worlds of more than one rank

}  // namespace dstrain::test
