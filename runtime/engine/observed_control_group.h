#pragma once
#include "runtime/base/progress_page.h"
#include "runtime/comm/control/control_group.h"

namespace dstrain::engine {

/// Passes everything on to another control group and tells the page that the agent reads when an
/// exchange runs. Nothing else communicates meanwhile: the exchanges of a rank and its collectives
/// are one sequence. Both parts must outlive it.
class ObservedControlGroup final : public comm::ControlGroup {
 public:
  ObservedControlGroup(comm::ControlGroup& inner, ProgressPage& progress)
      : ControlGroup({inner.rank(), inner.size()}), inner_(inner), progress_(progress) {}

  std::vector<std::string> exchange(const comm::Call& call, std::string_view own) override {
    progress_.begin_operation({.name = comm::name_of(call.operation), .numel = call.numel});
    std::vector<std::string> all = inner_.exchange(call, own);
    progress_.end_operation();
    return all;
  }
  void abort() noexcept override { inner_.abort(); }

 private:
  comm::ControlGroup& inner_;
  ProgressPage& progress_;
};

}  // namespace dstrain::engine
