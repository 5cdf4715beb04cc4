#pragma once
#include <array>
#include <cstddef>
#include <span>

#include "runtime/base/unique_handle.h"
#include "runtime/base/units.h"
#include "runtime/comm/group_barrier.h"

namespace dstrain::comm {

/// Bytes a rank shows to all others at a time; it has two such slots, so that it fills one while
/// the others still read the other. Large enough that a barrier (some microseconds) costs little,
/// small enough to stay in the second-level cache between the copy in and the copy out.
constexpr Bytes slot_bytes = 512 * kibibyte;

/// Bytes of one piece of a message between two ranks; a channel holds two.
constexpr Bytes channel_slot_bytes = 256 * kibibyte;

/// Bytes that a rank's slot for control values holds; it has two of them.
constexpr Bytes control_slot_bytes = 64 * kibibyte;

/// From one rank to one other.
struct alignas(64) Channel {
  WaitableCounter sent;
  alignas(64) WaitableCounter received;
  std::array<Call, 2> calls;  ///< what each piece belongs to
};

/// Where a rank's tensor of an operation lies, for the others to read. Written by its owner alone.
struct alignas(64) SharedTensor {
  static constexpr Bytes staged = -1;   ///< not in the segment: it comes through the slots
  static constexpr Bytes nothing = -2;  ///< the rank has nothing to show in this operation
  std::array<Bytes, 2> in_heap{};       ///< by parity of the operation's number
};

/// How much memory each of `size` ranks may allocate in the segment: what the machine has, as pages
/// that nobody touches cost nothing; less where address space or limits of this process are tight.
Bytes default_heap_bytes(int size);

/// The memory that the processes of one group share: blocks of the barrier, channels, slots, and a
/// heap per rank; and a barrier and slots of their own for control values. Pages that nobody
/// touches cost nothing. An anonymous file (memfd): /dev/shm is small in many containers, and
/// nothing is left behind however the processes end. All of it stays mapped in every process while
/// that process has the segment, whatever becomes of the others. Move-only.
class Segment {
 public:
  /// New, zeroed memory for `size` ranks; `heap_bytes`, a multiple of 2 MiB, is for each of them.
  /// Throws Error{io}.
  static Segment create(int size, Bytes heap_bytes);
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
  int undumped_error_ = 0;  ///< why core files will hold the heaps
};

}  // namespace dstrain::comm
