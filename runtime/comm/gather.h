#pragma once
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/comm/communicator.h"

namespace dstrain::comm {

/// The `own` of every rank, by rank. Synchronises the stream.
template <class T>
requires std::is_trivially_copyable_v<T> std::vector<T> gather_values(T own,
                                                                      Communicator& communicator,
                                                                      StreamView stream) {
  std::vector<T> all(static_cast<std::size_t>(communicator.size()));
  constexpr std::int64_t bytes = sizeof(T);
  communicator.all_gather({&own, DType::u8, {bytes}},
                          {all.data(), DType::u8, {bytes * communicator.size()}}, stream);
  stream.synchronize();
  return all;
}

/// The `own` of every rank, by rank, whatever their lengths. Takes the longest one's times the
/// number of ranks. Synchronises the stream.
std::vector<std::string> gather_texts(const std::string& own,
                                      Communicator& communicator,
                                      StreamView stream);

}  // namespace dstrain::comm
