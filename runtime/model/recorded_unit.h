#pragma once
#include "runtime/model/unit_plan.h"

namespace dstrain::model {

/// A unit that runs the layers recorded by UnitBuilder, with a plan that is made once.
class RecordedUnit final : public Unit {
 public:
  explicit RecordedUnit(UnitRecord record)
      : record_(std::move(record)), plan_(plan_unit(record_)) {}
  [[nodiscard]] const UnitSpec& spec() const override { return record_.spec; }
  [[nodiscard]] std::unique_ptr<const PlannedUnit> plan(BatchShape shape) const override;
  [[nodiscard]] Bytes cache_bytes(const CacheShape& shape) const override {
    return record_.cache_bytes(shape);
  }
  [[nodiscard]] std::vector<CachedTensor> cached(const CacheCall& cache) const override {
    return record_.cached(cache);
  }

  [[nodiscard]] const UnitRecord& record() const { return record_; }
  [[nodiscard]] const UnitPlan& steps() const { return plan_; }

 private:
  UnitRecord record_;
  UnitPlan plan_;
};

}  // namespace dstrain::model
