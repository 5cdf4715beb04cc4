#pragma once
#include <array>
#include <cstddef>
#include <span>

#include "runtime/base/unique_fd.h"
#include "runtime/base/units.h"
#include "runtime/comm/meeting.h"

namespace dstrain::comm {

/// Bytes a rank shows to all others at a time; it has two such slots, so that it fills one while
/// the others still read the other. Large enough that a tick (some microseconds) costs little,
/// small enough to stay in the second-level cache between the copy in and the copy out.
constexpr Bytes slot_bytes = 512 * kibibyte;

/// Bytes of one piece of a message between two ranks; a channel holds two.
constexpr Bytes channel_slot_bytes = 256 * kibibyte;

/// From one rank to one other.
struct alignas(64) Channel {
  Signal sent;
  alignas(64) Signal received;
  std::array<Call, 2> calls;  ///< what each piece belongs to
};

/// The memory that the processes of one group share: blocks to meet, channels, slots. Pages that
/// nobody touches cost nothing. An anonymous file (memfd): /dev/shm is small in many containers,
/// and nothing is left behind however the processes end. Move-only.
class Segment {
 public:
  /// New, zeroed memory for `size` ranks. Throws Error{io}.
  static Segment create(int size);
  /// The memory behind `file`, which another process made. Throws Error{comm} when it is not a
  /// segment for `size` ranks of this version.
  static Segment attach(UniqueFd file, int size);
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  /// What to pass to the other processes; close_file() once they have it.
  [[nodiscard]] int file() const noexcept { return file_.get(); }
  void close_file() noexcept { file_.reset(); }

  [[nodiscard]] GroupBlock& group() const;
  [[nodiscard]] std::span<MemberBlock> members() const;
  [[nodiscard]] std::byte* slot(int rank, std::uint32_t round) const;
  [[nodiscard]] Channel& channel(int source, int target) const;
  [[nodiscard]] std::byte* channel_slot(int source, int target, std::uint32_t piece) const;

 private:
  Segment(UniqueFd file, int size);

  UniqueFd file_;
  int size_;
  std::byte* base_ = nullptr;
};

}  // namespace dstrain::comm
