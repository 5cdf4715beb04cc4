#pragma once
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"

namespace dstrain::comm {

/// The `own` of every rank, by rank, whatever their lengths. Takes the longest one's times the
/// number of ranks. Synchronises the stream.
std::vector<std::string> gather_texts(const std::string& own,
                                      Communicator& communicator,
                                      StreamView stream);

}  // namespace dstrain::comm
