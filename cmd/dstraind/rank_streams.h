#pragma once
#include <memory>

#include "cmd/train_setup.h"
#include "runtime/backend/backend.h"

namespace dstrain::cmd {

/// The streams of a rank on its device: one that computes, and others for what runs beside it.
class RankStreams {
 public:
  /// `backend` must outlive it.
  RankStreams(Backend& backend, const TrainSetup& setup);
  [[nodiscard]] Streams views() const {
    return {*compute_, or_compute(communication_), or_compute(copies_), or_compute(transfers_)};
  }

 private:
  [[nodiscard]] StreamView or_compute(const std::unique_ptr<Stream>& stream) const {
    return stream ? *stream : *compute_;
  }

  // Null: what they would do, that which computes does.
  std::unique_ptr<Stream> compute_;
  std::unique_ptr<Stream> communication_;
  std::unique_ptr<Stream> copies_;
  std::unique_ptr<Stream> transfers_;
};

}  // namespace dstrain::cmd
