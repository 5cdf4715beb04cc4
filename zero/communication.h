#pragma once
#include <optional>

#include "runtime/comm/communicator.h"
#include "runtime/device/stream.h"
#include "runtime/profile/timeline.h"

namespace dstrain::zero {

/// How the parts of a store talk to the other ranks: through one communicator, on one stream, in
/// the order of their calls, which is the same on every rank. When that stream is not the computing
/// one, events order the two. Copies are the same communication.
class Communication {
 public:
  /// A point in the communication's work; empty when it runs in line with computing.
  using Point = std::optional<Event>;

  Communication(comm::Communicator& communicator,
                Streams streams,
                profile::Timeline* timeline = nullptr)
      : communicator_(&communicator), streams_(streams), timeline_(timeline) {}

  [[nodiscard]] comm::Communicator& communicator() const { return *communicator_; }
  [[nodiscard]] int rank() const { return communicator_->rank(); }
  /// Where to launch it.
  [[nodiscard]] StreamView stream() const { return streams_.communication; }

  /// What is launched from now on runs after all that `compute` was given so far. Throws what
  /// communication has failed with by now.
  void follow(StreamView compute) const;
  /// The point after all that was launched so far.
  [[nodiscard]] Point now() const;
  /// What `compute` is given from now on runs after `point`, which is empty after that. Throws what
  /// communication has failed with by then.
  void wait(Point& point, StreamView compute) const;
  /// Blocks until all is done. Throws what it failed with.
  void synchronize() const;

 private:
  comm::Communicator* communicator_;
  Streams streams_;
  profile::Timeline* timeline_;
};

}  // namespace dstrain::zero
