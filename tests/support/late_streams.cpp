#include "tests/support/late_streams.h"

#include <cstring>
#include <functional>

#include "runtime/device/cpu_stream_access.h"

namespace dstrain::test {
namespace {

thread_local LateStreams* streams_of_thread = nullptr;

/// The same for all copies of an event, for as long as there is one.
const void* identity_of(const Event& event) {
  static_assert(sizeof(Event) == sizeof(std::shared_ptr<void>));
  const void* state = nullptr;
  std::memcpy(&state, &event, sizeof(state));
  return state;
}

}  // namespace

// What the linker calls Event::record and Event::wait_on with --wrap.
Event real_record(StreamView stream) asm("__real__ZN7dstrain5Event6recordENS_10StreamViewE");
Event wrapped_record(StreamView stream) asm("__wrap__ZN7dstrain5Event6recordENS_10StreamViewE");
Event real_record_host(HostQueue& queue) asm("__real__ZN7dstrain5Event6recordERNS_9HostQueueE");
Event wrapped_record_host(HostQueue& queue) asm("__wrap__ZN7dstrain5Event6recordERNS_9HostQueueE");
void real_wait_on_host(const Event& event,
                       HostQueue& queue) asm("__real__ZNK7dstrain5Event7wait_onERNS_9HostQueueE");
void wrapped_wait_on_host(const Event& event, HostQueue& queue) asm(
    "__wrap__ZNK7dstrain5Event7wait_onERNS_9HostQueueE");
void real_wait_on(const Event& event,
                  StreamView stream) asm("__real__ZNK7dstrain5Event7wait_onENS_10StreamViewE");
void wrapped_wait_on(const Event& event,
                     StreamView stream) asm("__wrap__ZNK7dstrain5Event7wait_onENS_10StreamViewE");

/// Tells the streams of the calling thread which events they reach and wait for.
struct WrappedEvent {
  static Event record(StreamView stream) {
    const Event event = real_record(stream);
    LateStreams* const streams = streams_of_thread;
    if (streams != nullptr) cpu_stream(stream).launch_always(note_reached(*streams, event));
    return event;
  }

  static Event record(HostQueue& queue) {
    const Event event = real_record_host(queue);
    LateStreams* const streams = streams_of_thread;
    if (streams != nullptr) queue.run_always(note_reached(*streams, event));
    return event;
  }

  static void wait_on(const Event& event, StreamView stream) {
    LateStreams* const streams = streams_of_thread;
    LateStreams::Side* const side = streams == nullptr ? nullptr : streams->side_of(stream);
    const auto waits_for = [&](const void* identity) {
      if (side == nullptr) return;
      cpu_stream(stream).launch_always(
          [streams, side, identity] { streams->change([&] { side->event = identity; }); });
    };
    waits_for(identity_of(event));
    real_wait_on(event, stream);
    waits_for(nullptr);
    if (streams != nullptr && side == nullptr) {
      cpu_stream(stream).launch([streams] { streams->hold_communication(); });
    }
  }

  static void wait_on(const Event& event, HostQueue& queue) {
    real_wait_on_host(event, queue);
    LateStreams* const streams = streams_of_thread;
    if (streams != nullptr) queue.run([streams] { streams->hold_communication(); });
  }

 private:
  /// What is done once an event is reached, which has not been so far.
  static std::function<void()> note_reached(LateStreams& streams, const Event& event) {
    streams.change([&] { streams.reached_.erase(identity_of(event)); });
    return [&streams, event] {
      streams.change([&] { streams.reached_.insert(identity_of(event)); });
    };
  }
};

Event wrapped_record(StreamView stream) {
  return WrappedEvent::record(stream);
}

void wrapped_wait_on(const Event& event, StreamView stream) {
  WrappedEvent::wait_on(event, stream);
}

Event wrapped_record_host(HostQueue& queue) {
  return WrappedEvent::record(queue);
}

void wrapped_wait_on_host(const Event& event, HostQueue& queue) {
  WrappedEvent::wait_on(event, queue);
}

LateStreams::LateStreams(Late late) : late_(late) {
  streams_of_thread = this;
}

LateStreams::~LateStreams() {
  streams_of_thread = nullptr;
}

LateStreams::Side* LateStreams::side_of(StreamView stream) {
  if (stream == StreamView(compute())) return &compute_;
  return stream == StreamView(communication()) ? &communication_ : nullptr;
}

bool LateStreams::can_do_no_more(const Side& side) const {
  return side.at_end || (side.event != nullptr && !reached_.contains(side.event));
}

void LateStreams::hold_computing() {
  if (late_ != Late::computing) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return can_do_no_more(communication_); });
}

void LateStreams::hold_communication() {
  if (late_ != Late::communication) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return can_do_no_more(compute_); });
}

void LateStreams::begin() {
  change([this] { compute_.at_end = communication_.at_end = false; });
}

void LateStreams::end() {
  for (Side* const side : {&compute_, &communication_}) {
    side->stream.launch_always([this, side] { change([side] { side->at_end = true; }); });
  }
}

}  // namespace dstrain::test
