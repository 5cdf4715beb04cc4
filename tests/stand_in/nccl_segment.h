#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/os/futex.h"

namespace dstrain::stand_in {

/// Memory shared by the processes of a communicator; initially zero.
struct Segment {
  static constexpr int ranks_most = 8;
  static constexpr std::size_t slot_bytes = std::size_t{1} << 18;

  /// Carries messages from one rank to another in pieces.
  struct Mailbox {
    std::atomic<std::uint32_t> sent;
    std::atomic<std::uint32_t> taken;
    std::array<std::byte, 4096> piece;
  };
  std::atomic<std::uint64_t> arrived;  ///< arrivals of ranks, summed over all barriers
  FutexWord changes;
  std::array<std::array<std::byte, slot_bytes>, ranks_most> slots;
  std::array<std::array<Mailbox, ranks_most>, ranks_most> mail;  ///< [sender][receiver]
};

/// Creates a segment and returns the name by which other processes of this host find it while this
/// process lives; empty if that fails.
std::string make_segment();
/// Returns null if there is none of that name.
Segment* map_segment(const std::string& name);

}  // namespace dstrain::stand_in
