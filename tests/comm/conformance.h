#pragma once
#include "tests/comm/groups.h"

namespace dstrain::test {

/// What every Communicator keeps to; called in a test case per implementation. `sizes` are the
/// sizes of world that it can have.
void check_results(const GroupMaker& groups, const std::vector<int>& worlds);
void check_sequences(const GroupMaker& groups, const std::vector<int>& worlds);
void check_split(const GroupMaker& groups, const std::vector<int>& worlds);
void check_messages(const GroupMaker& groups);  ///< send and receive
void check_failures(const GroupMaker& groups);  ///< of worlds of more than one rank

}  // namespace dstrain::test
