#pragma once
#include <condition_variable>
#include <mutex>
#include <set>

#include "runtime/device/cpu_stream.h"
#include "runtime/device/event.h"

namespace dstrain::test {

/// A computing and a communicating stream, both workers, of which one is late: what holds on it
/// runs only when the other can do no more, as it waits for an event that was not reached or has
/// come to the end of what it was given. An order that no event makes is so the wrong one, each
/// time. Work that waits for an event on a third stream, to copy something, or on a queue of the
/// host holds as communication does. Made and used by the thread that launches.
class LateStreams {
 public:
  enum class Late { neither, computing, communication };
  explicit LateStreams(Late late);
  LateStreams(const LateStreams&) = delete;
  LateStreams& operator=(const LateStreams&) = delete;
  LateStreams(LateStreams&&) = delete;
  LateStreams& operator=(LateStreams&&) = delete;
  ~LateStreams();

  [[nodiscard]] CpuStream& compute() { return compute_.stream; }
  [[nodiscard]] CpuStream& communication() { return communication_.stream; }

  /// Called by work on the computing stream, first.
  void hold_computing();
  /// Called by each collective, first.
  void hold_communication();
  /// The launching thread waits for nothing of what it launches from now on, until end().
  void begin();
  void end();

 private:
  struct Side {
    CpuStream stream{CpuStream::Mode::worker_thread};
    bool at_end = true;           ///< of what it was given
    const void* event = nullptr;  ///< that it waits for
  };
  friend struct WrappedEvent;
  [[nodiscard]] Side* side_of(StreamView stream);
  [[nodiscard]] bool can_do_no_more(const Side& side) const;
  template <class Change>
  void change(Change&& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  Late late_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<const void*> reached_;  ///< events
  Side compute_;                   // last: their threads use the rest
  Side communication_;
};

}  // namespace dstrain::test
