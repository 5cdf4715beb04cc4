#pragma once
#include "runtime/comm/control/control_group.h"
#include "runtime/rank/progress_page.h"

namespace dstrain::engine {

/// Forwards to another control group, and publishes on the agent's page when an exchange runs.
/// Exchanges and collectives of a rank are one sequence, so nothing else communicates meanwhile.
/// Both must outlive it.
class ObservedControlGroup final : public comm::ControlGroup {
 public:
  ObservedControlGroup(comm::ControlGroup& inner, ProgressPage& progress)
      : ControlGroup({inner.rank(), inner.size()}), inner_(inner), progress_(progress) {}

  void agree(const comm::Call& call) override {
    begin(call);
    inner_.agree(call);
    progress_.end_operation();
  }
  std::vector<std::string> exchange(const comm::Call& call, std::string_view own) override {
    begin(call);
    std::vector<std::string> all = inner_.exchange(call, own);
    progress_.end_operation();
    return all;
  }
  std::unique_ptr<ControlGroup> split(comm::Communicator::Split split) override {
    return inner_.split(split);
  }
  void spread(const comm::GroupFailure& failure) noexcept override { inner_.spread(failure); }
  std::optional<comm::GroupFailure> failure() override { return inner_.failure(); }

 private:
  void begin(const comm::Call& call) {
    progress_.begin_operation({.name = comm::name_of(call.operation), .numel = call.numel});
  }

  comm::ControlGroup& inner_;
  ProgressPage& progress_;
};

}  // namespace dstrain::engine
