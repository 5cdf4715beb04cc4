#pragma once
#include <array>
#include <cstddef>
#include <span>

#include "runtime/base/unique_handle.h"
#include "runtime/base/units.h"
#include "runtime/comm/group_barrier.h"

namespace dstrain::comm {

/// Bytes that a rank shows to all others at a time. It has two such slots, so that it fills one
/// while the others still read the other. Large enough that a barrier (some microseconds) costs
/// little, small enough to stay in the second-level cache between the copy in and the copy out.
constexpr Bytes slot_bytes = 512 * kibibyte;

/// Bytes of one piece of a message between two ranks; a channel holds two.
constexpr Bytes channel_slot_bytes = 256 * kibibyte;

/// Bytes of a rank's slot for control values; it has two of them.
constexpr Bytes control_slot_bytes = 64 * kibibyte;

/// The messages from one rank to one other.
struct alignas(64) Channel {
  WaitableCounter sent;
  alignas(64) WaitableCounter received;
  std::array<Call, 2> calls;  ///< the operation of each piece
};

/// The location of a rank's tensor of an operation, for the others to read. Only its owner writes
/// it.
struct alignas(64) SharedTensor {
  static constexpr Bytes staged = -1;   ///< not in the segment: it goes through the slots
  static constexpr Bytes nothing = -2;  ///< the others read nothing of this rank in this operation
  std::array<Bytes, 2> in_heap{};       ///< by parity of the operation's number
};

/// Returns the memory that each of `size` ranks may allocate in the segment: that of the machine,
/// because untouched pages cost nothing; less if the address space or limits of this process are
/// tight.
Bytes default_heap_bytes(int size);

/// The memory that the processes of one group share: blocks of the barrier, channels, slots, and a
/// heap per rank; and a barrier and slots for control values. Untouched pages cost nothing. It is
/// an anonymous file (memfd): /dev/shm is small in many containers, and nothing is left behind
/// however the processes end. It stays mapped in every process that has the segment, even if the
/// others end. Move-only.
class Segment {
 public:
  /// Creates zeroed memory for `size` ranks; `heap_bytes`, a multiple of 2 MiB, is for each of
  /// them. Throws Error{io}.
  static Segment create(int size, Bytes heap_bytes);
  /// Maps the memory of `file`, which another process made. Throws Error{comm} if it is not a
  /// segment for `size` ranks of this version.
  static Segment attach(UniqueFd file, int size);
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  /// The descriptor to pass to the other processes; call close_file() once they have it.
  [[nodiscard]] int file() const noexcept { return file_.get(); }
  void close_file() noexcept { file_.reset(); }

  [[nodiscard]] GroupBlock& group() const;
  [[nodiscard]] std::span<MemberBlock> members() const;
  [[nodiscard]] std::byte* slot(int rank, std::uint32_t round) const;
  [[nodiscard]] Channel& channel(int source, int target) const;
  [[nodiscard]] std::byte* channel_slot(int source, int target, std::uint32_t piece) const;
  [[nodiscard]] SharedTensor& shared_tensor(int rank) const;
  [[nodiscard]] std::span<std::byte> heap(int rank) const;

  [[nodiscard]] GroupBlock& control_group() const;
  [[nodiscard]] std::span<MemberBlock> control_members() const;
  [[nodiscard]] std::byte* control_slot(int rank, std::uint32_t round) const;

 private:
  Segment(UniqueFd file, int size, Bytes heap_bytes);
  [[nodiscard]] int leave_out_of_dumps() const;

  UniqueFd file_;
  int size_;
  Bytes heap_bytes_;
  std::byte* base_ = nullptr;
  int undumped_error_ = 0;  ///< errno that kept the heaps in core files; 0: they are left out
};

}  // namespace dstrain::comm
