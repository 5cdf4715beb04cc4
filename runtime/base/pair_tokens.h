#pragma once
#include <cstdint>

namespace dstrain {

/// The special ids that a decoder needs beside the labels of a pair.
struct PairTokens {
  std::int32_t start = 0;    ///< before the first label
  std::int32_t padding = 0;  ///< for labels that do not count, and at the end of sources
};

}  // namespace dstrain
