#pragma once
#include <optional>

#include "runtime/comm/communicator.h"
#include "runtime/device/event.h"
#include "runtime/profile/timeline.h"

namespace dstrain::zero {

/// Communication of a store with the other ranks: one communicator on one stream, in the order of
/// the calls, which is the same on every rank. If that stream is not the computing one, events
/// order the two. Disk I/O and host computation for the store run on one queue, which events order
/// with the stream. Copies between device and host count as communication too.
class Communication {
 public:
  /// A point in the work of the communication; empty if it runs in line with computing.
  using Point = std::optional<Event>;

  /// `host` is inline when the streams do not overlap.
  Communication(comm::Communicator& communicator,
                Streams streams,
                HostQueue& host,
                profile::Timeline* timeline = nullptr)
      : communicator_(&communicator), streams_(streams), host_(&host), timeline_(timeline) {}

  [[nodiscard]] comm::Communicator& communicator() const { return *communicator_; }
  [[nodiscard]] int rank() const { return communicator_->rank(); }
  /// The stream to launch collectives and copies on.
  [[nodiscard]] StreamView stream() const { return streams_.communication; }
  /// The queue of the host.
  [[nodiscard]] HostQueue& host() const { return *host_; }

  /// Later launches on the communication stream run after everything launched on `compute` so far.
  /// Throws the failure of earlier communication.
  void follow(StreamView compute) const;
  /// Later tasks of the host queue run after everything launched on the communication stream so
  /// far. Without overlap this waits.
  void host_follows() const;
  /// Later launches on the communication stream run after all tasks of the host queue so far.
  void follow_host() const;
  /// The point after everything launched on the communication stream so far.
  [[nodiscard]] Point now() const;
  /// The point after all tasks of the host queue so far.
  [[nodiscard]] Point host_now() const;
  /// Later work on `compute` runs after `point`, which becomes empty. Throws the failure of earlier
  /// communication.
  void wait(Point& point, StreamView compute) const;
  /// Later work on `compute` runs after all communication and host tasks so far.
  void join(StreamView compute) const;
  /// Blocks until all of it is done. Throws its failure.
  void synchronize() const;

 private:
  comm::Communicator* communicator_;
  Streams streams_;
  HostQueue* host_;
  profile::Timeline* timeline_;
};

}  // namespace dstrain::zero
