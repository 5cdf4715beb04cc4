#include "runtime/model/recorded_unit.h"

#include "runtime/model/step_runner.h"

namespace dstrain::model {
namespace {

class Planned final : public PlannedUnit {
 public:
  Planned(const UnitRecord& record, const UnitPlan& plan, BatchShape shape)
      : record_(record), plan_(plan), placement_(place_buffers(record, plan, shape)) {}
  [[nodiscard]] const UnitMemory& memory() const override { return placement_.memory; }
  void forward(const UnitCall& call, StreamView stream) const override {
    run(0, static_cast<std::size_t>(plan_.forward_steps), call, stream);
  }
  void backward(const UnitCall& call, StreamView stream) const override {
    run(static_cast<std::size_t>(plan_.forward_steps), plan_.steps.size(), call, stream);
  }

 private:
  void run(std::size_t first, std::size_t end, const UnitCall& call, StreamView stream) const {
    const StepRunner runner({record_, plan_, placement_}, call, stream);
    for (std::size_t i = first; i < end; ++i) runner.run(plan_.steps[i]);
  }

  const UnitRecord& record_;
  const UnitPlan& plan_;
  Placement placement_;
};

}  // namespace

std::unique_ptr<const PlannedUnit> RecordedUnit::plan(BatchShape shape) const {
  return std::make_unique<Planned>(record_, plan_, shape);
}

}  // namespace dstrain::model
