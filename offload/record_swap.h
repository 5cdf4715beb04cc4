#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "offload/file_io.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::offload {

/// Keeps records in a swap file and brings them into memory through a few buffers: read ahead, used
/// in place, written behind. A record is in at most one buffer; ranges are relative to it, in
/// multiples of io_alignment. A disk failure is thrown by the call that waits for it. Thread-safe
/// if no two threads use the same record at once.
class RecordSwap {
 public:
  struct Options {
    int buffers = 4;
    bool write_behind = true;  ///< release() does not wait for the disk
  };
  /// `sizes`: bytes of each record, multiples of io_alignment; never use a record of size 0. The
  /// file is created in `directory` and throws as SwapFile does.
  RecordSwap(AsyncFileIo& io,
             const std::filesystem::path& directory,
             std::vector<Bytes> sizes,
             Options options,
             MemoryResource& memory,
             StreamView stream);
  RecordSwap(const RecordSwap&) = delete;
  RecordSwap& operator=(const RecordSwap&) = delete;
  RecordSwap(RecordSwap&&) = delete;
  RecordSwap& operator=(RecordSwap&&) = delete;
  /// Waits for I/O in flight.
  ~RecordSwap();

  static Bytes file_bytes(std::span<const Bytes> sizes);
  static Bytes buffer_bytes(std::span<const Bytes> sizes, int buffers);

  /// Begins to read a range of a record, if a buffer is free or will be after a write.
  void expect(int record, FileRange range);
  /// The same, but does not wait for a write.
  void expect_if_free(int record, FileRange range);
  /// Returns a buffer for the record and begins to read `range` into its place there; see wait().
  /// Blocks until a buffer is free, and until nobody else uses the record.
  std::span<std::byte> take(int record, FileRange range);
  /// Blocks until the range passed to take() was read.
  void wait(int record);
  std::span<std::byte> acquire(int record, FileRange range);
  /// Writes the range `written` to the file and then frees the buffer. An empty range writes
  /// nothing.
  void release(int record, FileRange written) { release(record, written, record); }
  /// The same, but writes to another record of the same size, which nobody uses. The file's copy of
  /// `record` does not change.
  void release(int record, FileRange written, int to);

 private:
  enum class State : std::uint8_t { free, expected, taken, writing };
  struct Slot {
    std::span<std::byte> memory;
    State state = State::free;
    int record = -1;
    FileRange range;               ///< the range that was read
    std::optional<Ticket> ticket;  ///< of the read or write in flight
    std::uint64_t turn = 0;        ///< when the slot last changed its state; larger is later
  };
  [[nodiscard]] Slot* find(int record);
  [[nodiscard]] Slot* oldest(State state);
  Slot* free_slot();
  Slot* slot_to_take();
  Slot* slot_at_hand();
  void settle(Slot& slot);
  void read(Slot& slot, int record, FileRange range, State state);

  AsyncFileIo& io_;
  std::vector<Bytes> sizes_;
  std::vector<Bytes> offsets_;
  Options options_;
  SwapFile file_;
  HostBuffer memory_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::vector<Slot> slots_;
  std::uint64_t turn_ = 0;
};

}  // namespace dstrain::offload
