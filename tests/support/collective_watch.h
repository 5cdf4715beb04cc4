#pragma once
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "runtime/comm/communicator.h"

namespace dstrain::test {

/// Observes a communicator for as long as it lives: before an operation runs, `watch` is called
/// with its name and the bytes that the rank hands in, where the operation runs; it may throw.
class CollectiveWatch final : public comm::CollectiveObserver {
 public:
  using Watch = std::function<void(const std::string& operation)>;
  CollectiveWatch(comm::Communicator& watched, Watch watch)
      : watched_(watched), watch_(std::move(watch)) {
    watched_.set_observer(this);
  }
  CollectiveWatch(const CollectiveWatch&) = delete;
  CollectiveWatch& operator=(const CollectiveWatch&) = delete;
  CollectiveWatch(CollectiveWatch&&) = delete;
  CollectiveWatch& operator=(CollectiveWatch&&) = delete;
  ~CollectiveWatch() { watched_.set_observer(nullptr); }

  void begin(const comm::Call& call) override {
    watch_(fmt::format("{} {}", comm::name_of(call.operation), call.numel * size_of(call.dtype)));
  }
  void end(const comm::Call& /*call*/) override {}

 private:
  comm::Communicator& watched_;
  Watch watch_;
};

}  // namespace dstrain::test
