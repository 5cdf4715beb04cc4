#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/os/futex.h"

namespace dstrain::stand_in {

/// What the processes of one communicator share: all zero at the start.
struct Segment {
  static constexpr int ranks_most = 8;
  static constexpr std::size_t slot_bytes = std::size_t{1} << 18;

  /// From one rank to another, in pieces.
  struct Mailbox {
    std::atomic<std::uint32_t> sent;
    std::atomic<std::uint32_t> taken;
    std::array<std::byte, 4096> piece;
  };
  std::atomic<std::uint64_t> arrived;  ///< ranks, in all barriers together
  FutexWord changes;
  std::array<std::array<std::byte, slot_bytes>, ranks_most> slots;
  std::array<std::array<Mailbox, ranks_most>, ranks_most> mail;  ///< of whom, for whom
};

/// Memory for a segment, by a name under which other processes of this host find it while this one
/// lives; empty: there is none.
std::string make_segment();
/// Null: there is none of that name.
Segment* map_segment(const std::string& name);

}  // namespace dstrain::stand_in
