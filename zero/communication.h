#pragma once
#include <optional>

#include "runtime/comm/communicator.h"
#include "runtime/device/event.h"
#include "runtime/profile/timeline.h"

namespace dstrain::zero {

/// How the parts of a store talk to the other ranks: through one communicator, on one stream, in
/// the order of their calls, which is the same on every rank. When that stream is not the computing
/// one, events order the two. What reads and writes disks for it, and computes beside it on the
/// host, runs on one queue, which events order with the stream. Copies are the same communication.
class Communication {
 public:
  /// A point in its work; empty when it runs in line with computing.
  using Point = std::optional<Event>;

  /// `host` is inline when the streams do not overlap.
  Communication(comm::Communicator& communicator,
                Streams streams,
                HostQueue& host,
                profile::Timeline* timeline = nullptr)
      : communicator_(&communicator), streams_(streams), host_(&host), timeline_(timeline) {}

  [[nodiscard]] comm::Communicator& communicator() const { return *communicator_; }
  [[nodiscard]] int rank() const { return communicator_->rank(); }
  /// Where to launch it.
  [[nodiscard]] StreamView stream() const { return streams_.communication; }
  /// Where the host works for it.
  [[nodiscard]] HostQueue& host() const { return *host_; }

  /// What is launched from now on runs after all that `compute` was given so far. Throws what
  /// communication has failed with by now.
  void follow(StreamView compute) const;
  /// What the host is given from now on runs after all that was launched so far; without overlap
  /// this waits.
  void host_follows() const;
  /// What is launched from now on runs after all that the host was given so far.
  void follow_host() const;
  /// The point after all that was launched so far.
  [[nodiscard]] Point now() const;
  /// The point after all that the host was given so far.
  [[nodiscard]] Point host_now() const;
  /// What `compute` is given from now on runs after `point`, which is empty after that. Throws what
  /// communication has failed with by then.
  void wait(Point& point, StreamView compute) const;
  /// What `compute` is given from now on runs after all that communication and the host were given
  /// so far.
  void join(StreamView compute) const;
  /// Blocks until all is done. Throws what it failed with.
  void synchronize() const;

 private:
  comm::Communicator* communicator_;
  Streams streams_;
  HostQueue* host_;
  profile::Timeline* timeline_;
};

}  // namespace dstrain::zero
