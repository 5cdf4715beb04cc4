#pragma once
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "offload/file_io.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::offload {

/// Records that lie in a swap file and come into memory through a few buffers: read ahead, used in
/// place, written behind. A record is in one buffer at most; ranges are within it, in multiples of
/// io_alignment. Failures of the disk come out of the call that waits for it. Thread-safe, as long
/// as one thread at a time uses a record.
class RecordSwap {
 public:
  struct Options {
    int buffers = 4;
    bool write_behind = true;  ///< release() does not wait for the disk
  };
  /// `sizes`: bytes of each record, multiples of io_alignment; one of none is never used. The file
  /// is made in `directory`; see SwapFile for what may be wrong with it.
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
  /// Waits for what is under way.
  ~RecordSwap();

  static Bytes file_bytes(std::span<const Bytes> sizes);
  static Bytes buffer_bytes(std::span<const Bytes> sizes, int buffers);

  /// Begins to read a range of a record, when a buffer is to spare or will be after a write.
  void expect(int record, FileRange range);
  /// Likewise, without waiting for a write.
  void expect_if_free(int record, FileRange range);
  /// A buffer for the record, at whose place in it `range` is being read: see wait(). Waits for a
  /// buffer when all are in use, and for the record when it is.
  std::span<std::byte> take(int record, FileRange range);
  /// What take() asked for has come.
  void wait(int record);
  std::span<std::byte> acquire(int record, FileRange range);
  /// The buffer is free again once `written` of it is in the file; nothing is, when it is empty.
  void release(int record, FileRange written) { release(record, written, record); }
  /// The same, but written to another record of the same size, which nobody uses; the file's copy
  /// of this one stays as it is.
  void release(int record, FileRange written, int to);

 private:
  enum class State : std::uint8_t { free, expected, taken, writing };
  struct Slot {
    std::span<std::byte> memory;
    State state = State::free;
    int record = -1;
    FileRange range;               ///< that was read
    std::optional<Ticket> ticket;  ///< of the read or the write under way
    std::uint64_t turn = 0;        ///< of its last change of hands
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
