#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/model/model.h"

namespace dstrain::zero {

/// The parts that will be acquired next, as far as they are known: see ParameterStore::expect().
class PartSchedule {
 public:
  void expect(std::span<const model::PartId> parts, std::int64_t rounds) {
    parts_ = parts;
    left_ = static_cast<std::int64_t>(parts.size()) * rounds;
    next_ = 0;
  }
  /// Notes that `part` is acquired. If another one was expected, the schedule becomes unknown.
  void advance(model::PartId part) {
    if (upcoming(0) != part) left_ = 0;
    if (left_ == 0) return;
    --left_;
    next_ = (next_ + 1) % parts_.size();
  }
  /// The part that will be acquired after `skipped` others, if that is known.
  [[nodiscard]] std::optional<model::PartId> upcoming(std::int64_t skipped) const {
    if (skipped >= left_) return std::nullopt;
    return parts_[(next_ + static_cast<std::size_t>(skipped)) % parts_.size()];
  }

 private:
  std::span<const model::PartId> parts_;
  std::int64_t left_ = 0;
  std::size_t next_ = 0;
};

}  // namespace dstrain::zero
