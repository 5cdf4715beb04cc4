#pragma once
#include "runtime/model/unit_plan.h"

namespace dstrain::model {

/// A unit that runs the layers recorded by UnitBuilder, with a plan that is made once.
class RecordedUnit final : public Unit {
 public:
  explicit RecordedUnit(UnitRecord record)
      : record_(std::move(record)), plan_(plan_unit(record_)) {}
  [[nodiscard]] const UnitSpec& spec() const override { return record_.spec; }
  [[nodiscard]] UnitMemory memory(BatchShape shape) const override {
    return place_buffers(record_, plan_, shape).memory;
  }
  void forward(const UnitCall& call, StreamView stream) const override;
  void backward(const UnitCall& call, StreamView stream) const override;

  [[nodiscard]] const UnitRecord& record() const { return record_; }
  [[nodiscard]] const UnitPlan& plan() const { return plan_; }

 private:
  UnitRecord record_;
  UnitPlan plan_;
};

}  // namespace dstrain::model
